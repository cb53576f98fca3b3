// What is one visit, and how many of one link are recorded. Mail programs load a pixel several times at once, and a link of
// a mail that was made public could be followed without end: loads of one pixel or link within a second are one event, and
// of one there are at most twenty a minute. Those beyond are answered as all are.
import { minuteMs, type Clock } from "../clock.ts";
import { createFairMap } from "../fairness/fair-map.ts";

export const sameVisitMs = 1_000;
export const visitsPerMinute = 20;
const mostLinks = 10_000;

export interface Repeats {
  /** True where this visit of `link` is not to be recorded. Of links without a place in memory each visit is. */
  isRepeat(accountKey: number, link: string): boolean;
}

export function createRepeats(clock: Pick<Clock, "monotonic">): Repeats {
  const seen = createFairMap<{ at: number; minuteBegan: number; visits: number }>(mostLinks);
  return {
    isRepeat(accountKey, link) {
      const now = clock.monotonic();
      const before = seen.get(link);
      if (before && now - before.at < sameVisitMs) return true;
      const sameMinute = before !== undefined && now - before.minuteBegan < minuteMs;
      if (sameMinute && before.visits >= visitsPerMinute) return true;
      seen.set(accountKey, link, {
        at: now,
        minuteBegan: sameMinute ? before.minuteBegan : now,
        visits: sameMinute ? before.visits + 1 : 1,
      });
      return false;
    },
  };
}
