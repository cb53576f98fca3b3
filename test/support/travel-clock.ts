// The machine's clock, which a test sets ahead: a day passes at a word, and what waited for it comes due at once. Unlike
// the clock that stands still, it suits the whole program: its threads and sockets go on by themselves.
import type { Clock, Timer } from "../../src/clock.ts";

const longestMs = 2 ** 31 - 1;

interface Waiting {
  at: number;
  handle: NodeJS.Timeout;
  run: () => void;
}

export class TravelClock implements Clock {
  #ahead = 0;
  readonly #waiting = new Set<Waiting>();

  now(): number {
    return Date.now() + this.#ahead;
  }
  monotonic(): number {
    return performance.now() + this.#ahead;
  }
  after(delayMs: number, run: () => void): Timer {
    const entry: Waiting = {
      at: this.monotonic() + Math.max(0, delayMs),
      handle: setTimeout(() => {}, 0),
      run,
    };
    this.#waiting.add(entry);
    this.#arm(entry);
    return {
      cancel: () => {
        clearTimeout(entry.handle);
        this.#waiting.delete(entry);
      },
    };
  }
  /** That much time has passed. */
  skip(ms: number): void {
    this.#ahead += ms;
    for (const entry of this.#waiting) this.#arm(entry);
  }

  #arm(entry: Waiting): void {
    clearTimeout(entry.handle);
    const left = Math.ceil(Math.max(0, entry.at - this.monotonic()));
    const step = Math.min(left, longestMs);
    entry.handle = setTimeout(() => {
      if (left > step) return this.#arm(entry);
      this.#waiting.delete(entry);
      entry.run();
    }, step);
  }
}
