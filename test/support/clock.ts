// A clock that tests move by hand: timers run in order when time passes them.
import type { Clock, Timer } from "../../src/clock.ts";

interface Waiting {
  at: number;
  order: number;
  run: () => void;
}

export class ManualClock implements Clock {
  #wall: number;
  #steady = 0;
  #order = 0;
  #waiting: Waiting[] = [];

  constructor(startMs = Date.parse("2026-11-27T09:00:00.000Z")) {
    this.#wall = startMs;
  }
  /** Whole milliseconds, as a machine's wall clock has them; a timer with jitter may stand between two. */
  now(): number {
    return Math.floor(this.#wall);
  }
  monotonic(): number {
    return this.#steady;
  }
  after(delayMs: number, run: () => void): Timer {
    const entry = { at: this.#steady + Math.max(0, delayMs), order: this.#order++, run };
    this.#waiting.push(entry);
    return { cancel: () => void (this.#waiting = this.#waiting.filter((other) => other !== entry)) };
  }
  /** Moves time forward, running each timer at its moment; promises settle between timers. */
  async advance(ms: number): Promise<void> {
    const end = this.#steady + ms;
    for (;;) {
      await settle();
      this.#waiting.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = this.#waiting[0];
      if (!next || next.at > end) break;
      this.#waiting.shift();
      this.#move(next.at);
      next.run();
    }
    this.#move(end);
    await settle();
  }
  /** Makes the wall clock jump, as an operator or NTP would; timers are not moved. */
  jump(ms: number): void {
    this.#wall += ms;
  }
  /** How many timers wait. */
  get pending(): number {
    return this.#waiting.length;
  }
  #move(steady: number): void {
    this.#wall += steady - this.#steady;
    this.#steady = steady;
  }
}

/** Lets everything that is ready on the loop run: promises, I/O that has arrived, immediates. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
