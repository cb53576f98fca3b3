// Paused accounts and their held mail, with the real store and the real runner.
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { systemSources } from "../../src/pools/sources.ts";
import { createRunner, type Runner } from "../../src/queue/runner.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import { createSendingPause, type SendingPause } from "../../src/sending-pause/sending-pause.ts";
import type { Store } from "../../src/store/store.ts";
import {
  accept,
  beginBoot,
  minute,
  newDirectory,
  newMessage,
  openSqlite,
  settlementOf,
  type MessageWishes,
} from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { deferredOutcome, deliveredOutcome } from "../support/jobs.ts";

const queueName = "1.default/x.test";

interface Bench {
  clock: ManualClock;
  store: Store;
  pauses: SendingPause;
  runner: Runner;
  mine: number;
  other: number;
  /** Whose mail was tried, in order. */
  tried: number[];
  put(accountKey: number, wishes?: Partial<MessageWishes>): Promise<string>;
  /** The same, and the queue does not know of it yet. */
  submitted(accountKey: number): Promise<void>;
  stateOf(id: string): Promise<string | undefined>;
  /** Lets the store answer. */
  turn(): Promise<void>;
  /** Until the store is quiet. */
  run(ms: number): Promise<void>;
  /** As after a kill: nothing is stopped, and another boot begins. */
  crash(): Promise<Bench>;
}

async function bench(
  options: {
    dataDir?: string;
    clock?: ManualClock;
    outcome?: (job: Job) => Outcome | Promise<Outcome>;
    boot?: string;
    connections?: number;
  } = {},
): Promise<Bench> {
  const { dataDir = newDirectory(), clock = new ManualClock(), boot = "boot-1" } = options;
  const store = await openSqlite(dataDir, clock);
  onTestFinished(() => store.close());
  await beginBoot(store, boot);
  const keyOf = async (name: string) => (await store.accountByName(name))?.key ?? 0;
  const [mine, other] = [await keyOf("default"), await keyOf("operations")];
  const tried: number[] = [];
  const log = silentLog;
  const pauses = createSendingPause({ store, clock, log });
  const runner = createRunner({
    store,
    destinationOf: async () => ({
      group: "x.test",
      account: 1,
      readyQueue: "x",
      sources: () => systemSources.usable(null),
      sourcesOf: () => [],
      prepare: () => undefined,
      async attempt(job) {
        tried.push(job.message.accountKey);
        return options.outcome?.(job) ?? deliveredOutcome();
      },
    }),
    suppressedSince: async () => null,
    random: Math.random,
    isPaused: pauses.isPaused,
    onNoSource: () => undefined,
    settlementOf: (job, outcome, now) =>
      settlementOf(job, now, {
        outcome: outcome.kind,
        owner: boot,
        nextAttemptAt: outcome.kind === "deferred" ? now + minute : null,
      }),
    shaping: createShaping({
      groups: { "x.test": { connections: options.connections ?? 50, per_second: 1000 } },
    }),
    owner: boot,
    leaseValid: () => true,
    clock,
    log,
  });
  const turn = async (): Promise<void> => {
    await store.setMaintenance(null); // when it is answered, so are the writes before it
    await clock.advance(1);
  };
  const run = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    for (let quiet = 0; quiet < 5;) {
      const before = tried.length;
      await turn();
      quiet = tried.length === before && runner.counts().active === 0 ? quiet + 1 : 0;
    }
  };
  pauses.onReleased(runner.note);
  await pauses.start();
  await runner.start();
  return {
    clock,
    store,
    pauses,
    runner,
    mine,
    other,
    tried,
    run,
    turn,
    async submitted(accountKey) {
      await accept(store, newMessage({ accountKey, to: ["a@x.test"], at: clock.now(), queueName }));
    },
    async put(accountKey, wishes = {}) {
      const message = newMessage({ accountKey, to: ["a@x.test"], at: clock.now(), queueName, ...wishes });
      await accept(store, message);
      runner.note(queueName, wishes.sendAt ?? clock.now());
      return message.message.id;
    },
    stateOf: async (id) => (await store.message(mine, id))?.recipients[0]?.state,
    async crash() {
      await store.close();
      return bench({ ...options, dataDir, clock, boot: `${boot}x` });
    },
  };
}

const times = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make));

test("mail of a paused account is not attempted, another account's in the same scheduled queue is; after the resume each is sent once", async () => {
  const { pauses, store, mine, other, put, submitted, run, tried } = await bench();
  await times(1000, () => submitted(mine));
  await pauses.pause(mine, "too many bounces");
  await times(3, () => put(other));
  await run(1000);
  expect(tried).toEqual([other, other, other]);
  expect(await store.queueCounts()).toMatchObject({ held: 1000, queued: 0, sending: 0 });
  await pauses.resume(mine, null);
  await run(10_000);
  expect(tried.filter((key) => key === mine)).toHaveLength(1000);
  expect(await store.queueCounts()).toMatchObject({ held: 0, queued: 0, sending: 0 });
});

test("claimed mail without a slot is requeued; an attempt under way ends, and its retry is held", async () => {
  const ends = Promise.withResolvers<Outcome>();
  const { pauses, store, runner, mine, put, run, turn, tried, stateOf } = await bench({
    connections: 1,
    outcome: (job) => (job.attempt === 1 && tried.length === 1 ? ends.promise : deliveredOutcome()),
  });
  const ids = await times(3, () => put(mine));
  while (tried.length === 0 || runner.counts().active !== 1) await turn();
  expect((await store.queueCounts()).sending).toBeGreaterThan(1);
  await pauses.pause(mine, "too many bounces");
  ends.resolve(deferredOutcome());
  await run(10 * minute);
  expect(tried).toHaveLength(1);
  expect((await store.queueCounts()).held).toBe(3);
  expect(new Set(await Promise.all(ids.map(stateOf)))).toEqual(new Set(["deferred", "queued"]));
  expect(
    (await store.message(mine, ids[1] ?? ""))?.recipients[0]?.attempts,
    "requeued mail has no attempt counted",
  ).toBe(0);
});

test("a slot reserved before the pause is not used after it", async () => {
  const { pauses, mine, other, put, run, runner, store, tried, clock } = await bench();
  await put(other);
  await run(10);
  const reservation = runner.reserve(queueName);
  if (!reservation) throw new Error("no slot");
  const message = newMessage({ accountKey: mine, to: ["a@x.test"], at: clock.now(), queueName });
  const leased = message.recipients.map((one) => ({ ...one, leaseOwner: reservation.leaseOwner }));
  const [job] = await accept(store, { ...message, recipients: leased });
  await pauses.pause(mine, "too many bounces");
  if (job) runner.run(reservation, job);
  await run(100);
  expect(tried).toEqual([other]);
  expect((await store.queueCounts()).held).toBe(1);
});

test("a kill during a pause and during a release loses no mail and sends none early", async () => {
  const first = await bench();
  await times(700, () => first.submitted(first.mine));
  await first.pauses.pause(first.mine, "too many bounces");
  await first.store.claimDue({
    owner: "boot-1",
    queueName,
    limit: 100,
    now: first.clock.now(),
  });
  const second = await first.crash(); // some are on hold, the others still wait
  await second.run(1000);
  expect(second.pauses.isPaused(second.mine)).toBe(true);
  expect(second.tried).toEqual([]);
  expect((await second.store.queueCounts()).held).toBe(700);
  await second.store.resumeAccount(second.mine, null);
  await second.store.releaseHeld(second.mine, second.clock.now(), 300);
  const third = await second.crash(); // some are queued, the others still held
  await third.pauses.release();
  await third.run(10_000);
  expect(third.tried).toHaveLength(700);
  expect(await third.store.queueCounts()).toMatchObject({ held: 0, queued: 0, sending: 0 });
});
