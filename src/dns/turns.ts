// Runs work that costs milliseconds one piece every few milliseconds, so that a burst does not block the event loop and
// one owner's work does not delay others'. Owners take turns.
import type { Clock } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import { Fifo } from "../fairness/fifo.ts";

/** Runs the work in one of the next turns of the loop; an owner's own in the order in which it came. */
export type Turns = (owner: Owner, work: () => void) => void;

const everyMs = 8;

export function createTurns(clock: Pick<Clock, "monotonic" | "after">): Turns {
  /** Owners with work that waits, the next one first. */
  const waiting = new Map<Owner, Fifo<() => void>>();
  let scheduled = false;
  let lastAt = -Infinity;
  const schedule = (): void => {
    if (scheduled || waiting.size === 0) return;
    scheduled = true;
    const waitMs = lastAt + everyMs - clock.monotonic();
    if (waitMs > 0) clock.after(waitMs, run);
    else setImmediate(run);
  };
  const run = (): void => {
    scheduled = false;
    lastAt = clock.monotonic();
    for (const [owner, own] of waiting) {
      const work = own.shift();
      waiting.delete(owner);
      if (own.size > 0) waiting.set(owner, own);
      schedule();
      return work?.();
    }
  };
  return (owner, work) => {
    const own = waiting.get(owner) ?? new Fifo<() => void>();
    own.push(work);
    if (own.size === 1) waiting.set(owner, own);
    schedule();
  };
}
