// The addresses that mail leaves from: all of them warm, so that a receiver takes as much from each from the first minute on,
// or all on the same day of their warm-up, whose caps are the pool's own. That a receiver takes less from a young address
// is left out: the caps are what keeps mail below that.
import { dayMs } from "../../src/clock.ts";
import type { Source } from "../../src/pools/sources.ts";

/** `warmupDay`: 1 for the first; null: warm. Midnight of the simulated day is 0. */
export function addressesOf(count: number, warmupDay: number | null): readonly Source[] {
  return Array.from({ length: count }, (_, i) => ({
    address: `192.0.2.${i + 1}`,
    hostname: null,
    weight: 1,
    warmingSince: warmupDay === null ? null : (1 - warmupDay) * dayMs,
  }));
}
