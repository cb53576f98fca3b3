// Runs pieces of work that cost the event loop a millisecond or more a few at a time, so that a burst does not block it
// and one owner's work does not delay others'. Owners take turns.
import type { Clock } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import { Fifo } from "./fifo.ts";

/**
 * Runs the work in one of the next turns of the loop; an owner's own in the order in which it came. Work that answers false
 * had nothing to do, and the next has its place.
 */
export type Turns = (owner: Owner, work: () => unknown) => void;

export interface TurnsOptions {
  clock: Pick<Clock, "monotonic" | "after">;
  /** Pieces that run in one turn of the loop. */
  pieces: number;
  /** Milliseconds from one such turn to the next; 0: the very next one. */
  everyMs: number;
}

export function createTurns({ clock, pieces, everyMs }: TurnsOptions): Turns {
  /** Owners with work that waits, the next one first. */
  const waiting = new Map<Owner, Fifo<() => unknown>>();
  let scheduled = false;
  let lastAt = -Infinity;
  const schedule = (): void => {
    if (scheduled || waiting.size === 0) return;
    scheduled = true;
    const waitMs = lastAt + everyMs - clock.monotonic();
    if (waitMs > 0) clock.after(waitMs, run);
    else setImmediate(run);
  };
  const next = (): (() => unknown) | undefined => {
    for (const [owner, own] of waiting) {
      const work = own.shift();
      waiting.delete(owner);
      if (own.size > 0) waiting.set(owner, own);
      return work;
    }
    return undefined;
  };
  const run = (): void => {
    scheduled = false;
    lastAt = clock.monotonic();
    for (let left = pieces; left > 0;) {
      const work = next();
      schedule();
      if (!work) return;
      if (work() !== false) left--;
    }
  };
  return (owner, work) => {
    const own = waiting.get(owner) ?? new Fifo<() => unknown>();
    own.push(work);
    if (own.size === 1) waiting.set(owner, own);
    schedule();
  };
}
