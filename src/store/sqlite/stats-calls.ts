// The loop's side of the statistics. What was counted waits until it is folded (stats-sort.ts, stats-fold.ts): by a job, and before
// every reading, so that a reading shows what was counted before it; where the store takes no writes it shows what was
// folded. Refusals are gathered for a second, so that a loop of them is one small write.
import type { Clock, Timer } from "../../clock.ts";
import type { Log } from "../../log.ts";
import { counterMask } from "../../model/counters.ts";
import { mailFacts } from "../../model/facts.ts";
import {
  quarterMs,
  statsKinds,
  statsScopes,
  type StatsListOf,
  type StatsOf,
} from "../../model/statistics.ts";
import { dayOfQuarter, quarterOf, quartersADay } from "../counters.ts";
import { addCounts, totalsOf } from "../counters.ts";
import type { Counted, Counts, StatsRow } from "../counters.ts";
import type { Commands, Lists, Lookups } from "./nouns.ts";
import type { Remote } from "./remote.ts";
import type { Space } from "./engine/space.ts";
import { StoreUnavailable } from "../store.ts";
import type { Store } from "../store.ts";

export interface StatsCalls extends Pick<
  Store,
  "countRejection" | "statsTotals" | "statsSums" | "statsList" | "foldStats"
> {
  /** Writes what is gathered. */
  stop(): Promise<void>;
}

interface StatsCallDeps {
  write: Pick<Remote<Commands>, "count" | "keepSorted" | "foldStats">;
  lists: Pick<Remote<Lists>, "sortCounts" | "statsDays" | "statsSums" | "statsList">;
  lookups: Pick<Lookups, "countsWait" | "countsWaiting">;
  space: Pick<Space, "full">;
  clock: Clock;
  log: Log;
}

const gatherMs = 1000;
const gatherMost = 1000;
/** Of a list's days that one question looks at. */
const daysAtOnce = 32;
const rejected = counterMask(["suppressedRejections"]);

export function createStatsCalls({ write, lists, lookups, space, clock, log }: StatsCallDeps): StatsCalls {
  let rejections = new Map<string, Counted>();
  let timer: Timer | null = null;
  let folding: Promise<void> | null = null;
  /** A reading since the last whole fold may have shown less than was counted. */
  let behind = false;

  const writeRejections = async (): Promise<void> => {
    timer?.cancel();
    timer = null;
    const counted = [...rejections.values()];
    rejections = new Map();
    if (counted.length > 0) await write.count(counted);
  };
  const countRejection: Store["countRejection"] = ({ recipientDomains, at, ...of }) => {
    for (const recipientDomain of recipientDomains) {
      const facts = mailFacts({ ...of, recipientDomain, ip: null, provider: null, classification: null });
      const name = `${quarterOf(at)}\n${facts}`;
      const known = rejections.get(name);
      if (known) known.times += 1;
      else rejections.set(name, { facts, at, counters: rejected, times: 1 });
    }
    if (rejections.size >= gatherMost) void quietly(writeRejections());
    else timer ??= clock.after(gatherMs, () => void quietly(writeRejections()));
  };

  /** What waits as it begins, and no more: each commit of a busy hour counts something, and there would be no end. */
  const foldAll = async (): Promise<void> => {
    let left = lookups.countsWaiting();
    const late = behind;
    behind = true;
    for (;;) {
      while (await write.foldStats({ late }));
      const sorted = await lists.sortCounts({ most: left });
      if (!sorted) break;
      await write.keepSorted(sorted);
      left -= sorted.read;
    }
    behind = false;
  };
  const fold = (): Promise<void> => (folding ??= foldAll().finally(() => (folding = null)));
  /** All that was counted before the call, which a fold that runs already does not meet. The last room of a disk is for mail. */
  const foldStats = async (): Promise<void> => {
    if (space.full()) {
      behind = true;
      return;
    }
    await writeRejections();
    await folding;
    if (lookups.countsWait()) await fold();
  };
  /** The store has logged what it refuses; other counts continue. */
  const quietly = async (work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) log.error({ err: error }, "statistics could not be written");
    }
  };

  const sumsOf = async (of: StatsOf, bounds: number[]): Promise<Counts[]> => {
    await quietly(foldStats());
    const days = await lists.statsDays(null);
    if (!days) return bounds.slice(1).map(() => []);
    const row = { ...rowOf(of), scope: statsScopes.all, scopeKey: "", key: of.key };
    return lists.statsSums({ of: row, bounds: bounds.map(quarterOf), days });
  };

  const statsList: Store["statsList"] = async (of, range) => {
    await quietly(foldStats());
    const found = new Map<string, Counts>();
    const days = await lists.statsDays(null);
    const row = listOf(of);
    const [from, to] = [quarterOf(range.from), quarterOf(range.to)];
    const begin = Math.max(from, (days?.first ?? 0) * quartersADay);
    const end = days ? Math.min(to, (days.last + 1) * quartersADay) : begin;
    for (let at = begin; days && at < end;) {
      const next = Math.min(end, (dayOfQuarter(at) + daysAtOnce) * quartersADay);
      for (const [key, counts] of await lists.statsList({
        of: row,
        stretch: { from: at, to: next },
        days,
      })) {
        const sum = found.get(key);
        if (sum) addCounts(sum, counts);
        else found.set(key, counts);
      }
      at = next;
    }
    return Array.from(found, ([key, counts]) => ({ key, totals: totalsOf(counts) }));
  };

  return {
    countRejection,
    async statsTotals(accountKey, { from, to, test }) {
      const end = Math.ceil(to / quarterMs) * quarterMs;
      const [sum = []] = await sumsOf({ accountKey, test, kind: "account", key: "" }, [from, end]);
      return totalsOf(sum);
    },
    statsSums: async (of, bounds) => (await sumsOf(of, bounds)).map(totalsOf),
    statsList,
    foldStats,
    stop: () => quietly(writeRejections()),
  };
}

function rowOf(of: { accountKey: number; test: boolean; kind: StatsOf["kind"] }) {
  return { accountKey: of.accountKey, test: of.test ? 1 : 0, kind: statsKinds[of.kind] };
}

function listOf({ scope, ...of }: StatsListOf): Omit<StatsRow, "key"> {
  return { ...rowOf(of), scope: statsScopes[scope.of], scopeKey: scope.key };
}
