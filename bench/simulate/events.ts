// Simulated time: heaps of what is to happen, and the Clock that the queue's code is given. Nothing waits; the clock is
// moved to the next event.
import type { Clock } from "../../src/clock.ts";

/** A binary min-heap of numbers by time, in typed arrays: millions of deferred messages stand in it, 12 bytes each. */
export class EventHeap {
  #times = new Float64Array(1024);
  #values = new Uint32Array(1024);
  #size = 0;

  /** When the next event is; Infinity: there is none. */
  nextAt(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#times[0] ?? 0);
  }

  push(at: number, value: number): void {
    if (this.#size === this.#times.length) this.#grow();
    let i = this.#size++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const time = this.#times[parent] ?? 0;
      if (time <= at) break;
      this.#times[i] = time;
      this.#values[i] = this.#values[parent] ?? 0;
      i = parent;
    }
    this.#times[i] = at;
    this.#values[i] = value;
  }

  /** Takes the next event's value; the heap is not empty. */
  pop(): number {
    const first = this.#values[0] ?? 0;
    const size = --this.#size;
    const [at, value] = [this.#times[size] ?? 0, this.#values[size] ?? 0];
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && (this.#times[child + 1] ?? 0) < (this.#times[child] ?? 0)) child += 1;
      const time = this.#times[child] ?? 0;
      if (time >= at) break;
      this.#times[i] = time;
      this.#values[i] = this.#values[child] ?? 0;
      i = child;
    }
    this.#times[i] = at;
    this.#values[i] = value;
    return first;
  }

  #grow(): void {
    const [times, values] = [new Float64Array(2 * this.#size), new Uint32Array(2 * this.#size)];
    times.set(this.#times);
    values.set(this.#values);
    [this.#times, this.#values] = [times, values];
  }
}

export interface SimulatedTime {
  /** Both of its times are milliseconds from midnight of the simulated day. */
  clock: Clock;
  /** When the next timer runs out; Infinity: there is none. */
  nextTimerAt(): number;
  moveTo(at: number): void;
  /** Runs the next timer; its time has come. */
  runTimer(): void;
}

export function createSimulatedTime(): SimulatedTime {
  const heap = new EventHeap();
  const timers = new Map<number, () => void>();
  let now = 0;
  let last = 0;
  return {
    clock: {
      now: () => now,
      monotonic: () => now,
      after(delayMs, run) {
        const id = (last = (last + 1) >>> 0);
        timers.set(id, run);
        heap.push(now + Math.max(0, delayMs), id);
        return { cancel: () => void timers.delete(id) };
      },
    },
    nextTimerAt: () => heap.nextAt(),
    moveTo(at) {
      now = at;
    },
    runTimer() {
      const id = heap.pop();
      const run = timers.get(id);
      timers.delete(id);
      run?.();
    },
  };
}
