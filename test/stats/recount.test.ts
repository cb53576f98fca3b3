// Random traffic: what the statistics say is what a naive count of the events says, in any zone and for any range.
import fc from "fast-check";
import { expect, test } from "vitest";
import { counterMask, counterNames, type CounterName } from "../../src/model/counters.ts";
import { mailFacts } from "../../src/model/facts.ts";
import { createStatsFold } from "../../src/store/sqlite/stats-fold.ts";
import { createStatsGather } from "../../src/store/sqlite/stats-gather.ts";
import { createStatsSort } from "../../src/store/sqlite/stats-sort.ts";
import { createStatsViews } from "../../src/store/sqlite/stats-views.ts";
import type { Lists } from "../../src/store/sqlite/nouns.ts";
import { remote } from "../../src/store/sqlite/remote.ts";
import { createTally } from "../../src/store/batch-counters.ts";
import type { Counted } from "../../src/store/counters.ts";
import { createStatsCalls } from "../../src/store/sqlite/stats-calls.ts";
import { migrate } from "../../src/store/sqlite/migrations.ts";
import { openWriting, prepareFiles } from "../../src/store/sqlite/engine/open.ts";
import { silentLog } from "../../src/log.ts";
import { newDirectory } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { removeFolder } from "../support/folders.ts";

const quarter = 15 * 60_000;
const start = Date.parse("2026-11-01T00:00:00Z");
const counters: CounterName[] = ["accepted", "delivered", "bounced", "opened"];

interface Happened {
  at: number;
  counter: CounterName;
  tag: string;
  to: string;
}

const happened: fc.Arbitrary<Happened> = fc.record({
  at: fc.integer({ min: start, max: start + 4 * 96 * quarter }),
  counter: fc.constantFrom(...counters),
  tag: fc.constantFrom("a", "b", "ü\\n"),
  to: fc.constantFrom("x.test", "y.test"),
});
/** Quarters from the start. */
const edge = fc.integer({ min: -5, max: 4 * 96 + 5 });

/** The parts of the store that count, on one connection. `meanwhile`: what each commit counts beside its piece of a fold. */
function counting(meanwhile: Happened[] = []) {
  const directory = newDirectory();
  const path = prepareFiles(directory);
  const db = openWriting(path);
  db.pragma("synchronous = OFF"); // what is on disk after a power cut is not asked here
  migrate(db, path);
  const tally = createTally();
  const gather = createStatsGather(db, tally);
  const { foldStats, keepSorted } = createStatsFold(db);
  const [fold, keep] = [db.transaction(foldStats), db.transaction(keepSorted)];
  const views: Record<string, (arg: never) => unknown> = { ...createStatsViews(db), ...createStatsSort(db) };
  const batch = (list: Happened[]): void => {
    for (const one of list) tally.counted.push(countedOf(one));
    gather.flush();
  };
  let pieces = 0;
  const kept: number[] = [];
  const foldPiece = async (arg: { late: boolean }): Promise<boolean> => {
    if (++pieces > 1000) throw new Error("a fold without an end");
    const folded = fold(arg);
    batch(meanwhile);
    return folded;
  };
  const waiting = db.prepare<[], { n: number }>("SELECT count(*) AS n FROM stats_waiting");
  const entries = db.prepare<[], { n: number }>(
    "SELECT coalesce(sum(json_array_length(body)), 0) AS n FROM stats_waiting",
  );
  const calls = createStatsCalls({
    space: { full: () => false },
    write: {
      count: async () => undefined,
      async keepSorted(sorted) {
        for (const piece of sorted.pieces) kept.push((JSON.parse(piece) as unknown[]).length);
        batch(meanwhile);
        keep(sorted);
      },
      foldStats: foldPiece,
    },
    lists: remote<Lists>(async (name, arg) => views[name]?.(arg as never)),
    lookups: { countsWait: () => true, countsWaiting: () => waiting.get()?.n ?? 0 },
    clock: new ManualClock(),
    log: silentLog,
  });
  return {
    calls,
    batch,
    /** How many rows each piece of the folds so far had. */
    kept,
    /** How many sums wait to be folded. */
    waiting: () => entries.get()?.n ?? 0,
    /** As a start does it. */
    batchOfAnotherStart(list: Happened[]): void {
      const own = createTally();
      const another = createStatsGather(db, own);
      for (const one of list) own.counted.push(countedOf(one));
      another.flush();
    },
    close(): void {
      db.close();
      removeFolder(directory);
    },
  };
}

function countedOf({ at, counter, tag, to }: Happened): Counted {
  return { facts: facts(tag, to), at, counters: counterMask([counter]), times: 1 };
}

function facts(tag: string, recipientDomain: string): string {
  const of = { accountKey: 1, test: false, domain: "shop.example", pool: "default", recipientDomain };
  return mailFacts({
    ...of,
    tagsJson: JSON.stringify([tag]),
    ip: null,
    provider: null,
    classification: null,
  });
}

function naive(list: Happened[], from: number, to: number): Partial<Record<CounterName, number>> {
  const sums: Partial<Record<CounterName, number>> = {};
  for (const { at, counter } of list) if (at >= from && at < to) sums[counter] = (sums[counter] ?? 0) + 1;
  return sums;
}

const counted = (totals: Record<CounterName, number>): Partial<Record<CounterName, number>> =>
  Object.fromEntries(counterNames.flatMap((name) => (totals[name] ? [[name, totals[name]]] : [])));

test("sums and lists equal a recount, however the batches and the folds fell", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.array(happened, { maxLength: 20 }), fc.boolean()), { maxLength: 8 }),
      edge,
      edge,
      async (batches, one, other) => {
        const { calls, batch, close } = counting();
        try {
          for (const [list, folded] of batches) {
            batch(list);
            if (folded) await calls.foldStats();
          }
          const all = batches.flatMap(([list]) => list);
          const [from, to] = [Math.min(one, other), Math.max(one, other) + 1].map(
            (edge) => start + edge * quarter,
          ) as [number, number];
          const account = { accountKey: 1, test: false, kind: "account", key: "" } as const;
          const middle = from + Math.floor((to - from) / 2 / quarter) * quarter;
          const sums = await calls.statsSums(account, [from, middle, to]);
          expect(sums.map(counted)).toEqual([naive(all, from, middle), naive(all, middle, to)]);
          const scope = { of: "domain", key: "shop.example" } as const;
          const tags = await calls.statsList({ ...account, kind: "tag", scope }, { from, to });
          const byTag = Object.fromEntries(tags.map(({ key, totals }) => [key, counted(totals)]));
          const expected = Object.entries(Object.groupBy(all, ({ tag }) => tag))
            .map(([tag, list = []]) => [tag, naive(list, from, to)] as const)
            .filter(([, sum]) => Object.keys(sum).length > 0);
          expect(byTag).toEqual(Object.fromEntries(expected));
        } finally {
          close();
        }
      },
    ),
    { numRuns: 25 },
  );
});

test("a fold takes what was counted before it, and ends however much is counted while it runs", async () => {
  const sent: Happened = { at: start, counter: "accepted", tag: "a", to: "x.test" };
  const { calls, batch, close } = counting([sent]);
  for (let n = 0; n < 1200; n++) batch([sent]);
  await Promise.all([calls.foldStats(), calls.foldStats()]);
  const account = { accountKey: 1, test: false, kind: "account", key: "" } as const;
  const [sum] = await calls.statsSums(account, [start, start + quarter]);
  expect(sum?.accepted).toBeGreaterThanOrEqual(1200);
  close();
});

test("counts of two thousand things are written in pieces of a few rows, so that other writes come between", async () => {
  const { calls, batch, kept, close } = counting();
  for (let n = 0; n < 2000; n += 50)
    batch(
      Array.from({ length: 50 }, (_, i) => ({
        at: start,
        counter: "accepted",
        tag: "a",
        to: `${n + i}.test`,
      })),
    );
  await calls.foldStats();
  expect(kept.length).toBeGreaterThan(20);
  expect(Math.max(...kept)).toBe(150);
  const account = { accountKey: 1, test: false, kind: "account", key: "" } as const;
  const [sum] = await calls.statsSums(account, [start, start + quarter]);
  expect(sum?.accepted).toBe(2000);
  close();
});

test("what a day has no room for waits as one sum, so that a fold stays short: before a fold, after it, after a start", async () => {
  const { calls, batch, batchOfAnotherStart, waiting, close } = counting();
  const fresh = (from: number): Happened[] =>
    Array.from({ length: 100 }, (_, n) => ({
      at: start,
      counter: "accepted",
      tag: "a",
      to: `${from + n}.test`,
    }));
  for (let n = 0; n < 1000; n += 100) batch(fresh(n));
  expect(waiting()).toBe(1000);
  batch(fresh(1000));
  expect(waiting()).toBe(1001);
  await calls.foldStats();
  batch(fresh(2000));
  batch(fresh(0)); // the day has them
  expect(waiting()).toBe(101);
  await calls.foldStats();
  batchOfAnotherStart(fresh(3000));
  expect(waiting()).toBe(1);
  batchOfAnotherStart(fresh(900));
  expect(waiting()).toBe(101); // the day has these too, to the last of its list
  const of = { accountKey: 1, test: false } as const;
  const range = { from: start, to: start + quarter };
  const domains = await calls.statsList(
    { ...of, kind: "recipientDomain", scope: { of: "all", key: "" } },
    range,
  );
  expect(domains).toHaveLength(1001);
  expect(domains.find(({ key }) => key === "(other)")?.totals.accepted).toBe(300);
  expect(domains.find(({ key }) => key === "999.test")?.totals.accepted).toBe(2);
  const [sum] = await calls.statsSums({ ...of, kind: "account", key: "" }, [range.from, range.to]);
  expect(sum?.accepted).toBe(1500);
  close();
});

test("a day keeps its first thousand keys of a list, and counts the others together", async () => {
  const { calls, batch, close } = counting();
  const list = Array.from({ length: 1300 }, (_, n): Happened => ({
    at: start,
    counter: "accepted",
    tag: `order-${n}`,
    to: "x.test",
  }));
  for (let at = 0; at < list.length; at += 100) batch(list.slice(at, at + 100));
  await calls.foldStats();
  batch(list.slice(0, 1));
  batch(list.slice(-1));
  const account = { accountKey: 1, test: false, kind: "tag", scope: { of: "all", key: "" } } as const;
  const tags = await calls.statsList(account, { from: start, to: start + quarter });
  expect(tags).toHaveLength(1001);
  const accepted = (key: string): number | undefined => tags.find((row) => row.key === key)?.totals.accepted;
  expect([accepted("order-0"), accepted("order-1"), accepted("(other)")]).toEqual([2, 1, 301]);
  const [sum] = await calls.statsSums({ accountKey: 1, test: false, kind: "account", key: "" }, [
    start,
    start + quarter,
  ]);
  expect(sum?.accepted).toBe(1302);
  close();
});
