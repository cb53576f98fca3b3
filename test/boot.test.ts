// The boot: its heartbeat, and what a start takes over from others, by the daemon's own pieces on a real store.
import { expect, onTestFinished, test } from "vitest";
import { createBoot } from "../src/boot.ts";
import { createRecorder } from "../src/events/record.ts";
import { silentLog, type Log } from "../src/log.ts";
import type { Outcome } from "../src/mail/outcome.ts";
import type { Job } from "../src/model/queued-recipient.ts";
import { systemSources } from "../src/pools/sources.ts";
import { createRunner } from "../src/queue/runner.ts";
import { settlementOf } from "../src/queue/settle.ts";
import { createShaping } from "../src/queue/shaping.ts";
import { StoreUnavailable, type Store } from "../src/store/store.ts";
import { createDispatcher } from "../src/webhooks/dispatcher.ts";
import type { Answer } from "../src/webhooks/post.ts";
import {
  accept,
  inChunks,
  mint,
  newDirectory,
  newEndpoint,
  newMessage,
  openSqlite,
  readAll,
} from "./store/fixtures.ts";
import { ManualClock, settle } from "./support/clock.ts";
import { deferredOutcome, deliveredOutcome, makeTrace } from "./support/jobs.ts";
import { uncapped } from "./support/warmups.ts";
import { removeFolder } from "./support/folders.ts";

const minute = 60_000;
const hour = 60 * minute;
/** What the wall clock may do: an operator or NTP sets it, the machine was asleep, or has lost its battery. */
const jumps = [
  { text: "2 hours", ms: 2 * hour },
  { text: "29 days", ms: 29 * 24 * hour },
  { text: "-25 hours", ms: -25 * hour },
  { text: "back to 1970", ms: 1000 - new ManualClock().now() },
];
const queueName = "x.test";

test("the heartbeat renews the lease of the boot, and a stop ends it", async () => {
  const clock = new ManualClock();
  const calls: unknown[] = [];
  const store = {
    beginBoot: async (boot: unknown) => void calls.push(boot),
    renewBoot: async (id: string, until: number) => calls.push([id, until]) > 0,
    endBoot: async (id: string, at: number) => void calls.push([id, at]),
  };
  const boot = createBoot({ store, node: "n", clock, log: silentLog, onEnded: unexpected });
  const { id } = boot;
  const begun = clock.now();
  expect(boot.leaseValid()).toBe(false);
  await boot.start();
  expect(boot.leaseValid()).toBe(true);
  await clock.advance(7 * minute);
  await boot.stop();
  expect(calls).toEqual([
    { id, node: "n", leaseUntil: begun + 10 * minute },
    [id, begun + 200_000 + 10 * minute],
    [id, begun + 400_000 + 10 * minute],
    [id, begun + 7 * minute],
  ]);
  expect(clock.pending).toBe(0);
});

const unexpected = (detail: string): never => {
  throw new Error(detail);
};

/** A boot over a store whose renewals a test answers. */
async function started(renewBoot: () => Promise<boolean>) {
  const clock = new ManualClock();
  const ended: string[] = [];
  const boot = createBoot({
    store: { beginBoot: async () => undefined, renewBoot, endBoot: async () => undefined },
    node: "n",
    clock,
    log: silentLog,
    onEnded: (detail) => void ended.push(detail),
  });
  await boot.start();
  return { clock, boot, ended };
}

test("no attempt may finish once the store has not renewed the lease for its whole length; a second after it does they may again", async () => {
  let refused = false;
  const { clock, boot, ended } = await started(() =>
    refused ? Promise.reject(new StoreUnavailable("full", "no room")) : Promise.resolve(true),
  );
  await clock.advance(4 * minute);
  refused = true;
  await clock.advance(9 * minute);
  expect(boot.leaseValid()).toBe(true);
  await clock.advance(minute);
  expect(boot.leaseValid()).toBe(false);
  refused = false;
  await clock.advance(1000);
  expect(boot.leaseValid()).toBe(true);
  await boot.stop();
  expect(boot.leaseValid()).toBe(false);
  expect([clock.pending, ended]).toEqual([0, []]);
});

test("a boot that another process has ended says so once, at its next heartbeat, and finishes no attempt any more", async () => {
  const { clock, boot, ended } = await started(() => Promise.resolve(false));
  await clock.advance(4 * minute);
  expect(boot.leaseValid()).toBe(false);
  await clock.advance(9 * minute);
  expect(boot.leaseValid()).toBe(false);
  expect(ended).toEqual(["the leases of this process were ended by another one"]);
});

test.each(jumps)(
  "a jump of the wall clock by $text neither ends the leases of a living boot nor prolongs them",
  async ({ ms }) => {
    let refused = false;
    const { clock, boot, ended } = await started(() =>
      refused ? Promise.reject(new StoreUnavailable("failed", "no disk")) : Promise.resolve(true),
    );
    await clock.advance(minute);
    clock.jump(ms);
    expect(boot.leaseValid()).toBe(true);
    await clock.advance(20 * minute);
    expect(boot.leaseValid()).toBe(true);
    refused = true;
    clock.jump(-ms);
    await clock.advance(10 * minute);
    expect(boot.leaseValid()).toBe(false);
    await boot.stop();
    expect([clock.pending, ended]).toEqual([0, []]);
  },
);

/** A start of the daemon as far as leases go: its attempts, of mail and of webhooks, end when the test says so. */
function daemon(store: Store, clock: ManualClock, node: string) {
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, text) => void logged.push(text) };
  const boot = createBoot({ store, node, clock, log, onEnded: unexpected });
  const { id: owner, leaseValid } = boot;
  const mails: { job: Job; end(outcome: Outcome): void }[] = [];
  const posts: { attempt: number; end(answer: Answer): void }[] = [];
  const schedule = { retryMs: [minute], maxAgeMs: 9 * minute };
  const deps = {
    recorder: createRecorder({ clock, mint }),
    mint,
    schedule,
    owner,
    random: () => 0,
    isCaught: () => false,
  };
  const runner = createRunner({
    store,
    destinationOf: async () => ({
      group: "x.test",
      account: 1,
      readyQueue: "x",
      sources: () => systemSources.usable(null),
      sourcesOf: () => [],
      prepare: () => undefined,
      attempt: (job) => new Promise((end) => mails.push({ job, end })),
    }),
    suppressedSince: async () => null,
    isQueuePaused: () => false,
    isPaused: () => false,
    onNoSource: () => undefined,
    settlementOf: (job, outcome, now, group) => settlementOf(deps, job, outcome, now, group),
    ...uncapped,
    shaping: createShaping(null),
    random: () => 0,
    owner,
    leaseValid,
    clock,
    log,
  });
  const dispatcher = createDispatcher({
    store,
    owner,
    scheduleMs: [minute],
    clock,
    log,
    onDeadLetter: () => undefined,
    post: {
      open: () => {
        throw new Error("no network here");
      },
      post: (_connect, _endpoint, _event, attempt) => new Promise((end) => posts.push({ attempt, end })),
    },
  });
  return {
    owner,
    mails,
    posts,
    logged,
    async start() {
      await boot.start();
      await store.takeBackDeliveries(owner, clock.now());
      dispatcher.start();
      await runner.start();
    },
    /** Until it has begun what it can: the writer answers in order, so what was asked before is answered. */
    async quiet() {
      for (let i = 0; i < 20; i++) {
        await clock.advance(1);
        await store.renewBoot("none", 0);
      }
    },
  };
}

async function world() {
  const clock = new ManualClock();
  const dataDir = newDirectory();
  let store = await openSqlite(dataDir, clock);
  onTestFinished(async () => {
    await store.close();
    removeFolder(dataDir);
  });
  const account = (await store.accountByName("default"))?.key ?? 0;
  const endpoint = await store.createEndpoint(newEndpoint(account, clock.now()));
  const message = newMessage({ accountKey: account, to: ["a@x.test"], at: clock.now(), queueName });
  await accept(store, message);
  const { id } = message.message;
  const record = createRecorder({ clock, mint }).test(endpoint, "message.delivered");
  await store.recordEvent({ ...record, messageKey: null });
  return {
    clock,
    account,
    id,
    store: () => store,
    /** As after a kill -9: nobody stops anything, and the directory is opened by the next process. */
    async killed() {
      await store.close();
      store = await openSqlite(dataDir, clock);
    },
    recipient: async () => (await store.message(account, id))?.recipients[0],
    delivery: async () =>
      (await store.listEvents(account, { eventId: record.id }, { limit: 1, cursor: null })).rows[0]
        ?.deliveries[0],
  };
}

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await settle();
};
const answered: Answer = { delivered: true, status: 200, durationMs: 1, failure: null, body: null };

test.each(["a", "b"])(
  "a start of node %s beside a living boot of node a takes nothing from it: mail, webhook or file",
  async (node) => {
    const { clock, store, account, recipient, delivery } = await world();
    const living = daemon(store(), clock, "a");
    await living.start();
    await living.quiet();
    expect([living.mails.length, living.posts.length]).toEqual([1, 1]);
    const bytes = Buffer.alloc(100_000, 7);
    const content = await store().putContent(inChunks(bytes, 9000));

    const beside = daemon(store(), clock, node);
    await beside.start();
    await beside.quiet();
    await clock.advance(30 * minute);
    await beside.quiet();
    expect([beside.mails.length, beside.posts.length, beside.logged]).toEqual([0, 0, []]);
    expect(await recipient()).toMatchObject({ state: "sending", attempts: 1 });

    living.mails[0]?.end(deliveredOutcome());
    living.posts[0]?.end(answered);
    await until(async () => (await recipient())?.state === "delivered");
    await until(async () => (await delivery())?.status === "delivered");
    expect(await store().attempts(account, living.mails[0]?.job.message.id ?? "")).toMatchObject([
      { attempt: 1, outcome: "delivered" },
    ]);
    const named = newMessage({ accountKey: account, to: ["b@y.test"], at: clock.now(), content });
    await accept(store(), named);
    const kept = (await store().message(account, named.message.id))?.content;
    expect(kept && (await readAll(store().openContent(kept))).equals(bytes)).toBe(true);
  },
);

test("the start after a kill -9 sends at once what was in flight, each once", async () => {
  const { clock, store, account, id, killed, recipient, delivery } = await world();
  const dead = daemon(store(), clock, "a");
  await dead.start();
  await dead.quiet();
  expect([dead.mails.length, dead.posts.length]).toEqual([1, 1]);
  await killed();
  const next = daemon(store(), clock, "a");
  await next.start();
  await next.quiet();
  expect(next.mails.map(({ job }) => job.attempt)).toEqual([2]);
  expect(next.posts.map(({ attempt }) => attempt)).toEqual([2]);
  const [startedAt, endedAt] = [clock.now(), clock.now() + 1];
  next.mails[0]?.end({ ...deliveredOutcome(), trace: makeTrace({ startedAt, endedAt }) });
  next.posts[0]?.end(answered);
  await until(async () => (await recipient())?.state === "delivered");
  await until(async () => (await delivery())?.status === "delivered");
  expect((await store().attempts(account, id)).map(({ outcome }) => outcome)).toEqual([
    "interrupted",
    "delivered",
  ]);
});

test.each(jumps)(
  "the start after a kill -9 sends at once what was in flight, though the wall clock has jumped by $text",
  async ({ ms }) => {
    const { clock, store, killed, recipient, delivery } = await world();
    const dead = daemon(store(), clock, "a");
    await dead.start();
    await dead.quiet();
    expect([dead.mails.length, dead.posts.length]).toEqual([1, 1]);
    clock.jump(ms);
    await killed();
    const next = daemon(store(), clock, "a");
    await next.start();
    await next.quiet();
    expect(next.mails.map(({ job }) => job.attempt)).toEqual([2]);
    expect(next.posts.map(({ attempt }) => attempt)).toEqual([2]);
    next.mails[0]?.end(deliveredOutcome());
    next.posts[0]?.end(answered);
    await until(async () => (await recipient())?.state === "delivered");
    await until(async () => (await delivery())?.status === "delivered");
  },
);

test("a delivery of a boot that lost its lease counts: the mail is not sent again, and the attempt of the one that has it ends nothing twice", async () => {
  const { clock, store, account, id, recipient } = await world();
  const stalled = daemon(store(), clock, "a");
  await stalled.start();
  await stalled.quiet();
  await store().endBoot(stalled.owner, clock.now());
  const next = daemon(store(), clock, "a");
  await next.start();
  await next.quiet();
  expect(next.mails).toHaveLength(1);
  stalled.mails[0]?.end(deliveredOutcome());
  await until(async () => (await recipient())?.state === "delivered");
  next.mails[0]?.end(deferredOutcome());
  await next.quiet();
  await clock.advance(30 * minute);
  await next.quiet();
  expect(next.mails).toHaveLength(1);
  expect(await recipient()).toMatchObject({ state: "delivered" });
  const { rows } = await store().listEvents(account, { messageId: id }, { limit: 9, cursor: null });
  expect(rows.map(({ type }) => type)).toEqual(["message.delivered"]);
});

test("a deferral of a boot that lost its lease does not end the attempt of the one that has it", async () => {
  const { clock, store, recipient } = await world();
  const stalled = daemon(store(), clock, "a");
  await stalled.start();
  await stalled.quiet();
  await store().endBoot(stalled.owner, clock.now());
  const next = daemon(store(), clock, "a");
  await next.start();
  await next.quiet();
  expect(next.mails).toHaveLength(1);
  stalled.mails[0]?.end(deferredOutcome());
  await next.quiet();
  expect(await recipient()).toMatchObject({ state: "sending", attempts: 2 });
  next.mails[0]?.end(deliveredOutcome());
  await until(async () => (await recipient())?.state === "delivered");
});
