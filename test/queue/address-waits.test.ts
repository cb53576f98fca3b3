// Mail that waits for an address of its pool, with the real store and the real runner.
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Source } from "../../src/pools/sources.ts";
import { createAddressWaits } from "../../src/queue/address-waits.ts";
import { createRunner, type Runner } from "../../src/queue/runner.ts";
import { nextAttemptAt } from "../../src/queue/schedule.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import type { Store } from "../../src/store/store.ts";
import { accept, minute, newDirectory, newMessage, openSqlite, settlementOf } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { deferredOutcome, deliveredOutcome } from "../support/jobs.ts";

const queueName = "1.default/x.test";
const hour = 60 * minute;
const schedule = { retryMs: [hour], maxAgeMs: 4 * 24 * hour };
const address: Source = { address: "192.0.2.1", hostname: null, weight: 1 };

interface Bench {
  clock: ManualClock;
  store: Store;
  mine: number;
  /** What was tried, in order. */
  tried: Job[];
  addresses(usable: readonly Source[]): void;
  put(): Promise<string>;
  /** Until the store is quiet. */
  run(ms: number): Promise<void>;
  stateOf(id: string): Promise<string | undefined>;
  restart(): Promise<Bench>;
}

async function bench(
  options: {
    outcome?: (job: Job) => Outcome | Promise<Outcome>;
    connections?: number;
    dataDir?: string;
    clock?: ManualClock;
  } = {},
): Promise<Bench> {
  const { dataDir = newDirectory(), clock = new ManualClock(), outcome = () => deferredOutcome() } = options;
  const store = await openSqlite(dataDir, clock);
  onTestFinished(() => store.close());
  const mine = (await store.accountByName("default"))?.key ?? 0;
  const tried: Job[] = [];
  let usable: readonly Source[] = [];
  const runner: Runner = createRunner({
    store,
    destinationOf: async () => ({
      group: "x.test",
      account: mine,
      readyQueue: "x",
      sources: () => usable,
      sourcesOf: () => [],
      prepare: () => undefined,
      async attempt(job) {
        tried.push(job);
        return outcome(job);
      },
    }),
    suppressedSince: async () => null,
    random: () => 0,
    isPaused: () => false,
    onNoSource: () => undefined,
    settlementOf(job, { kind }, now) {
      const named = { delayMs: null, random: 0 };
      const next =
        kind === "deferred" ? nextAttemptAt(schedule, job.attempt, job.message.queuedAt, now, named) : null;
      const state = kind === "deferred" && next === null ? "bounced" : kind;
      return settlementOf(job, now, { owner: "boot", outcome: state, nextAttemptAt: next?.at ?? null });
    },
    shaping: createShaping({
      groups: { "x.test": { connections: options.connections ?? 50, per_second: 1000 } },
    }),
    owner: "boot",
    leaseValid: () => true,
    clock,
    log: silentLog,
  });
  const run = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    for (let quiet = 0; quiet < 5;) {
      const before = tried.length;
      await store.setMaintenance(null); // when it is answered, so are the writes before it
      await clock.advance(1);
      quiet = tried.length === before ? quiet + 1 : 0;
    }
  };
  await runner.start();
  return {
    clock,
    store,
    mine,
    tried,
    run,
    addresses(list) {
      usable = list;
      runner.onSourcesChanged();
    },
    async put() {
      const message = newMessage({ accountKey: mine, to: ["a@x.test"], at: clock.now(), queueName });
      await accept(store, message);
      runner.note(queueName, clock.now());
      return message.message.id;
    },
    stateOf: async (id) => (await store.message(mine, id))?.recipients[0]?.state,
    async restart() {
      await runner.stop();
      await store.close();
      return bench({ ...options, dataDir, clock });
    },
  };
}

test("mail that waited longer than its lifetime for an address is deferred at its first 451, and has its whole lifetime then", async () => {
  const { addresses, put, run, stateOf, tried } = await bench();
  const id = await put();
  await run(schedule.maxAgeMs + hour);
  expect(tried).toEqual([]);
  addresses([address]);
  await run(1000);
  expect([tried.length, await stateOf(id)]).toEqual([1, "deferred"]);
  await run(schedule.maxAgeMs - hour);
  expect(await stateOf(id)).toBe("deferred");
  await run(2 * hour);
  expect(await stateOf(id)).toBe("bounced");
});

test("a retry that waits for an address does not age either, nor do changes that bring none end the wait", async () => {
  const { addresses, put, run, stateOf, tried } = await bench();
  addresses([address]);
  const id = await put();
  await run(1000);
  expect(await stateOf(id)).toBe("deferred");
  addresses([]);
  for (let day = 0; day < 6; day++) {
    await run(24 * hour);
    addresses([]);
  }
  addresses([address]);
  await run(1000);
  expect([tried.length, await stateOf(id)]).toEqual([2, "deferred"]);
  const [first, second] = tried.map(({ message }) => message.queuedAt);
  const waited = (second ?? 0) - (first ?? 0);
  expect(waited).toBeGreaterThan(6 * 24 * hour - 2 * hour);
  expect(waited, "the hour until its retry was due counts").toBeLessThan(6 * 24 * hour);
});

test("the time behind a slow receiver counts, after an address came back", async () => {
  const slow = Promise.withResolvers<Outcome>();
  const { addresses, put, run, clock, tried } = await bench({
    connections: 1,
    outcome: () => (tried.length === 1 ? slow.promise : deliveredOutcome()),
  });
  for (let n = 0; n < 5; n++) await put();
  const accepted = clock.now();
  await run(2 * hour);
  const back = clock.now();
  addresses([address]);
  await run(24 * hour);
  expect(tried).toHaveLength(1);
  slow.resolve(deliveredOutcome());
  await run(minute);
  expect(tried).toHaveLength(5);
  for (const { message } of tried) {
    expect(message.queuedAt).toBeGreaterThan(accepted + 2 * hour - minute);
    expect(message.queuedAt).toBeLessThanOrEqual(back);
  }
});

test("mail that was due before a restart and still finds no address keeps the wait before it", async () => {
  const first = await bench();
  const id = await first.put();
  await first.run(schedule.maxAgeMs);
  const second = await first.restart();
  await second.run(2 * hour);
  second.addresses([address]);
  await second.run(1000);
  expect([second.tried.length, await second.stateOf(id)]).toEqual([1, "deferred"]);
});

test("mail of an account that is paused when the address comes back keeps its wait through the hold", async () => {
  const { addresses, put, run, store, clock, mine, tried } = await bench();
  await put();
  const accepted = clock.now();
  await run(5 * hour);
  await store.pauseAccount(mine, clock.now(), "too many bounces");
  addresses([address]);
  await run(5 * hour);
  expect(tried).toEqual([]);
  await store.resumeAccount(mine, null);
  await store.releaseHeld(mine, clock.now(), 10);
  const { jobs } = await store.claimDue({
    owner: "boot",
    queueName,
    limit: 1,
    now: clock.now(),
  });
  const aged = clock.now() - (jobs[0]?.message.queuedAt ?? 0);
  expect(clock.now() - accepted).toBeGreaterThan(10 * hour);
  expect(aged).toBeLessThan(minute);
});

test("a scheduled queue's waits are remembered until what is left of it was due after the last of them", () => {
  const waits = createAddressWaits();
  waits.begin("a", 10);
  waits.end("a", 20);
  waits.begin("a", 30);
  expect([...waits.changed(40)]).toEqual(["a"]);
  waits.end("a", 90);
  const both = [
    { from: 10, until: 20 },
    { from: 30, until: 40 },
  ];
  expect(waits.of("a")).toEqual(both);
  waits.claimed("a", 39);
  expect(waits.of("a")).toEqual(both);
  waits.claimed("a", 40);
  expect(waits.of("a")).toEqual([]);
  expect([...waits.changed(50)]).toEqual([]);
});
