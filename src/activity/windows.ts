// Counts of the last minute, in memory: by second, and by ten seconds for each key of a list. What is older is gone.
// Measured on the monotonic clock. Memory is bounded: beyond the limit a key that was not counted for longest, to ten seconds, is forgotten.
import type { Clock } from "../clock.ts";

/** A ring of equal spans of time, the last of which is running; a sum for each of `names` in each. */
export class Window {
  readonly #sums: Float64Array;
  readonly #spans: number;
  readonly #spanMs: number;
  readonly #width: number;
  /** The number of the running span, counted from the clock's start. */
  #at: number;

  constructor(width: number, spans: number, spanMs: number, nowMs: number) {
    this.#width = width;
    this.#spans = spans;
    this.#spanMs = spanMs;
    this.#sums = new Float64Array(width * spans);
    this.#at = Math.floor(nowMs / spanMs);
  }

  add(place: number, by: number, nowMs: number): void {
    this.#forward(nowMs);
    const at = (this.#at % this.#spans) * this.#width + place;
    this.#sums[at] = (this.#sums[at] ?? 0) + by;
  }

  /** The sums of one place by span, oldest first, the running one last. */
  series(place: number, nowMs: number): number[] {
    this.#forward(nowMs);
    return Array.from(
      { length: this.#spans },
      (_, age) => this.#sums[((this.#at + 1 + age) % this.#spans) * this.#width + place] ?? 0,
    );
  }

  total(place: number, nowMs: number): number {
    this.#forward(nowMs);
    let sum = 0;
    for (let at = place; at < this.#sums.length; at += this.#width) sum += this.#sums[at] ?? 0;
    return sum;
  }

  /** Whether something was counted, or asked, in the span that runs. */
  isCurrent(nowMs: number): boolean {
    return this.#at >= Math.floor(nowMs / this.#spanMs);
  }

  /** Empties what has come round again. */
  #forward(nowMs: number): void {
    const now = Math.floor(nowMs / this.#spanMs);
    if (now - this.#at >= this.#spans) this.#sums.fill(0);
    else
      for (let span = this.#at + 1; span <= now; span++) {
        const from = (span % this.#spans) * this.#width;
        this.#sums.fill(0, from, from + this.#width);
      }
    this.#at = Math.max(this.#at, now);
  }
}

export interface MinuteOf<Name extends string> {
  key: string;
  counts: Record<Name, number>;
}

export interface Minutes<Name extends string> {
  add(key: string, name: Name): void;
  /** What was counted in the last minute, by key: the keys with the highest sums, at most `most`. */
  top(most: number): MinuteOf<Name>[];
  readonly size: number;
}

const keysMost = 1000;
/** The running one and six whole ones. */
const spans = 7;
const spanMs = 10_000;

export function createMinutes<Name extends string>(
  names: readonly Name[],
  clock: Clock,
  most = keysMost,
): Minutes<Name> {
  const windows = new Map<string, Window>();
  const forgetOldest = (): void => {
    for (const oldest of windows.keys()) {
      windows.delete(oldest);
      return;
    }
  };
  return {
    add(key, name) {
      const now = clock.monotonic();
      const known = windows.get(key);
      if (known?.isCurrent(now)) return known.add(names.indexOf(name), 1, now);
      if (known) windows.delete(key);
      else if (windows.size >= most) forgetOldest();
      const window = known ?? new Window(names.length, spans, spanMs, now);
      windows.set(key, window); // at the young end
      return window.add(names.indexOf(name), 1, now);
    },
    top(shown) {
      const now = clock.monotonic();
      const rows = [...windows].map(([key, window]) => {
        const sums = names.map((name, place) => [name, window.total(place, now)] as const);
        return {
          key,
          counts: Object.fromEntries(sums) as Record<Name, number>,
          sum: sums.reduce((all, [, sum]) => all + sum, 0),
        };
      });
      return rows
        .filter(({ sum }) => sum > 0)
        .toSorted((a, b) => b.sum - a.sum || (a.key < b.key ? -1 : 1))
        .slice(0, shown)
        .map(({ key, counts }) => ({ key, counts }));
    },
    get size() {
      return windows.size;
    },
  };
}
