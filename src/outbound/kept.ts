// What was made for a message, kept for its other recipients and the next tries: made once, unless it is old, was null or
// failed. The oldest goes first where there are more than `most`.
import type { Clock } from "../clock.ts";

/** A signature made longer ago is made again, so that its t= stays near the attempt. */
const keptMs = 600_000;

export type Kept<T> = (id: string, make: () => Promise<T | null>) => Promise<T | null>;

export function createKept<T>(clock: Pick<Clock, "monotonic">, most: number): Kept<T> {
  const made = new Map<string, { madeAt: number; value: Promise<T | null> }>();
  return (id, make) => {
    const before = made.get(id);
    if (before && clock.monotonic() - before.madeAt < keptMs) return before.value;
    const value = make();
    const forget = () => made.delete(id);
    value.then((result) => result === null && forget(), forget);
    made.set(id, { madeAt: clock.monotonic(), value });
    for (const oldest of made.keys()) {
      if (made.size <= most) break;
      made.delete(oldest);
    }
    return value;
  };
}
