// Counts of a quarter of an hour, as they wait to be folded: what has the same facts is summed, and kept as a short list.
import { counterNames } from "../model/counters.ts";
import { addCounts, noCounts, quarterOf } from "./counters.ts";
import type { Counted, Counts } from "./counters.ts";

/** Counts of the same facts in the same quarter of an hour: [facts, quarter, counter, n, counter, n, …]. */
export type WaitingCounts = [facts: string, quarter: number, ...pairs: number[]];

export interface CountsOfQuarter {
  facts: string;
  quarter: number;
  counts: Counts;
}

/** `factsOf`: what they are counted as. */
export function sumsOf(
  counted: Counted[],
  factsOf: (facts: string, at: number) => string,
): CountsOfQuarter[] {
  const sums = new Map<string, CountsOfQuarter>();
  let last: CountsOfQuarter | null = null;
  for (const { facts: given, at, counters, times } of counted) {
    const [facts, quarter] = [factsOf(given, at), quarterOf(at)];
    if (last?.facts !== facts || last.quarter !== quarter)
      last = merge(sums, { facts, quarter, counts: noCounts() });
    raise(last.counts, counters, times);
  }
  return [...sums.values()];
}

/** Adds to the sum of the same facts and quarter, which is answered. */
export function merge(sums: Map<string, CountsOfQuarter>, more: CountsOfQuarter): CountsOfQuarter {
  const name = `${more.quarter}\n${more.facts}`;
  const known = sums.get(name);
  if (known) addCounts(known.counts, more.counts);
  else sums.set(name, more);
  return known ?? more;
}

function raise(counts: Counts, counters: number, times: number): void {
  for (let place = 0; place < counterNames.length; place++)
    if (counters & (1 << place)) counts[place] = (counts[place] ?? 0) + times;
}

export function entryOf({ facts, quarter, counts }: CountsOfQuarter): WaitingCounts {
  return [facts, quarter, ...pairsOf(counts)];
}

export function readWaiting([facts, quarter, ...pairs]: WaitingCounts): CountsOfQuarter {
  return { facts, quarter, counts: countsOfPairs(pairs) };
}

/** Counts in short: the places that are not 0, each with its number. */
export function pairsOf(counts: Counts): number[] {
  return counts.flatMap((n, place) => (n === 0 ? [] : [place, n]));
}

export function countsOfPairs(pairs: number[]): Counts {
  const counts = noCounts();
  for (let i = 0; i < pairs.length; i += 2) counts[pairs[i] ?? 0] = pairs[i + 1] ?? 0;
  return counts;
}
