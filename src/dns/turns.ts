// Work that costs milliseconds, a piece a turn of the loop, so that many pieces that come at once hold up nothing else.
import { Fifo } from "../fairness/fifo.ts";

/** Runs the work in one of the next turns of the loop, in the order in which it came. */
export type Turns = (work: () => void) => void;

export function createTurns(): Turns {
  const waiting = new Fifo<() => void>();
  let scheduled = false;
  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      const work = waiting.shift();
      if (waiting.size > 0) schedule();
      work?.();
    });
  };
  return (work) => {
    waiting.push(work);
    schedule();
  };
}
