// How long GET /v1/stats/* takes over what five million events of thirty days leave in the counters: 1,000 recipient
// domains, 200 providers, 50 tags, 20 sending domains, 4 pools, 8 addresses. Filled through the writer's own counting
// and folding, asked through the HTTP server over a socket. `npx node bench/stats.ts`
import { rmSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { counterMask } from "../src/model/counters.ts";
import { mailFacts } from "../src/model/facts.ts";
import { quarterMs } from "../src/model/statistics.ts";
import { createBatchRunner } from "../src/store/sqlite/engine/batch.ts";
import type { Counted } from "../src/store/counters.ts";
import { createWriter } from "../src/store/sqlite/writer.ts";
import { createStatsSort } from "../src/store/sqlite/stats-sort.ts";
import { databaseName } from "../src/store/sqlite/engine/open.ts";
import { startHttp } from "../test/http/harness.ts";
import { newDirectory, openSqlite } from "../test/store/fixtures.ts";
import { ManualClock } from "../test/support/clock.ts";

const events = 5_000_000;
const days = 30;
/** Different counts of a day; each stands for as many equal events as make five million. */
const entriesADay = 20_000;
const rounds = 15;
const dayMs = 24 * 60 * 60 * 1000;
const start = Date.parse("2026-11-01T00:00:00Z");
const now = start + days * dayMs - 5 * 60_000;

/** A linear congruential generator: the same traffic each time. */
let seed = 1;
const below = (n: number): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return Math.floor((seed / 2 ** 31) * n);
};
const kinds = [
  ["delivered"],
  ["delivered"],
  ["delivered"],
  ["deferred"],
  ["bounced", "bouncedHard"],
] as const;

function countedOf(accountKey: number, day: number): Counted {
  const recipient = Math.min(below(1000), below(1000)); // the first are the larger ones
  const counters = kinds[below(kinds.length)] ?? ["delivered"];
  return {
    facts: mailFacts({
      accountKey,
      test: false,
      domain: `sender${below(20)}.example`,
      pool: `pool${below(4)}`,
      tagsJson: JSON.stringify([`tag${below(50)}`]),
      recipientDomain: `recipients${recipient}.example`,
      ip: `192.0.2.${below(8)}`,
      provider: `provider${recipient % 200}`,
      classification: counters.length > 1 ? "invalid_recipient" : null,
    }),
    at: start + day * dayMs + below(96) * quarterMs,
    counters: counterMask(counters),
    times: Math.round(events / days / entriesADay),
  };
}

const dataDir = newDirectory();
const clock = new ManualClock(now);
const opened = await openSqlite(dataDir, clock);
const accountKey = (await opened.accountByName("default"))?.key ?? 0;
await opened.close();

const runner = createBatchRunner(join(dataDir, databaseName), clock, createWriter);
const call = (command: "count" | "keepSorted" | "foldStats", arg: unknown): unknown => {
  const done = runner.run({
    calls: [{ command, arg, at: 0, lengths: [] }],
    bytes: new Uint8Array(0),
    withinMs: 1000,
  });
  if (done.kind !== "committed") throw new Error(done.detail);
  runner.tidy();
  return done.results[0];
};
const reading = new Sqlite(join(dataDir, databaseName), { readonly: true });
const { sortCounts } = createStatsSort(reading);
const [sort, keep, fold]: [number[], number[], number[]] = [[], [], []];
function timed<T>(list: number[], work: () => T): T {
  const began = performance.now();
  const done = work();
  list.push(performance.now() - began);
  return done;
}
const filling = performance.now();
for (let day = 0; day < days; day++) {
  for (let left = entriesADay; left > 0; left -= 1000)
    call(
      "count",
      Array.from({ length: 1000 }, () => countedOf(accountKey, day)),
    );
  for (;;) {
    const sorted = timed(sort, () => sortCounts({ most: entriesADay }));
    if (!sorted) break;
    timed(keep, () => call("keepSorted", sorted));
    while (timed(fold, () => call("foldStats", { late: false })) === true);
  }
}
reading.close();
runner.close();
process.stdout.write(`filled in ${((performance.now() - filling) / 1000).toFixed(0)} s\n`);
report("a sort of counts, in the reader's thread", sort);
report("sorted counts kept", keep);
report("a piece of a fold", fold);

const store = await openSqlite(dataDir, clock);
const rate = { burst: 1e9, perSecond: 1e9 };
const http = await startHttp({
  opened: { store, clock },
  config: { rates: { "stats-read": rate, account: rate } },
});
const kolkata = "timezone=Asia/Kolkata";
for (const path of [
  "",
  `?${kolkata}`,
  "?tag=tag7",
  "/timeseries",
  "/timeseries?granularity=hour",
  `/timeseries?${kolkata}`,
  "/tags",
  "/domains",
  "/recipient_domains",
  `/recipient_domains?${kolkata}`,
  "/recipient_domains?domain=sender3.example",
  "/providers",
  "/ips",
  "/ip_pools",
  "/bounces",
  "/webhooks",
]) {
  const took: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const began = performance.now();
    const { status, text } = await http.ask({ path: `/v1/stats${path}` });
    took.push(performance.now() - began);
    if (status !== 200) throw new Error(text);
  }
  report(`GET /v1/stats${path}`, took);
}
await http.stop();
rmSync(dataDir, { recursive: true });

function report(what: string, took: number[]): void {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1);
  process.stdout.write(`${what.padEnd(60)} median ${at(0.5)} ms, most ${at(1)} ms\n`);
}
