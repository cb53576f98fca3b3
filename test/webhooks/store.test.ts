import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRecorder } from "../../src/events/record.ts";
import { eventMask } from "../../src/events/subscriptions.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import type { DeadLetter } from "../../src/webhooks/results.ts";
import { createWebhooks } from "../../src/webhooks/webhooks.ts";
import { jobOf, traceOf } from "../events/jobs.ts";
import { openSqlite, owner } from "../store/fixtures.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import { resolverOf, scheduleMs, secret } from "./rig.ts";
import { removeFolder } from "../support/folders.ts";

/** The real store in a folder of its own, an endpoint at a real receiver, and the dispatcher between them. */
async function wired({ started = true } = {}) {
  const clock = new ManualClock();
  const mint = createIdMint();
  const dataDir = await mkdtemp(join(tmpdir(), "webhooks-store-"));
  const store = await openSqlite(dataDir, clock);
  const receiver = await startWebhookReceiver({ secret, now: () => clock.now() });
  const account = await store.accountByName("default");
  if (!account) throw new Error("no default account");
  const endpoint = await store.createEndpoint({
    id: mint("whk", clock.now()),
    accountKey: account.key,
    url: receiver.url,
    eventMask: eventMask(["message.delivered", "message.bounced"]),
    description: null,
    active: true,
    secret,
    previousSecret: null,
    previousSecretUntil: null,
    createdAt: clock.now(),
    updatedAt: clock.now(),
    lastSuccessAt: null,
    lastFailureAt: null,
    consecutiveFailures: 0,
    failingSince: null,
    format: "svc",
  });
  const recorder = createRecorder({ clock, mint });
  const letters: DeadLetter[] = [];
  let written = 0;
  const webhooks = createWebhooks({
    store: {
      accountsToFanOut: () => store.accountsToFanOut(),
      fanOut: (accountKey, before) => store.fanOut(accountKey, before),
      endpointsDue: () => store.endpointsDue(),
      endpointByKey: (key) => store.endpointByKey(key),
      claimDeliveries: (claim) => store.claimDeliveries(claim),
      requeueDeliveries: (deliveries, at, how) => store.requeueDeliveries(deliveries, at, how),
      takeBackDeliveries: (owner, now) => store.takeBackDeliveries(owner, now),
      async settleDeliveries(results) {
        await store.settleDeliveries(results);
        written += results.length;
      },
    },
    owner,
    recorder,
    config: { allowNetworks: ["127.0.0.0/8"], caFile: receiver.caFile, scheduleMs, timeoutMs: 10_000 },
    resolver: resolverOf({}),
    clock,
    log: silentLog,
    onDeadLetter: (letter) => letters.push(letter),
  });
  store.onCommit(({ deliveries }) => void (deliveries && webhooks.kick()));
  if (started) await webhooks.start();
  onTestFinished(async () => {
    await webhooks.stop();
    await store.close();
    await receiver.stop();
    removeFolder(dataDir);
  });
  const record = async (): Promise<string> => {
    const reply = { code: 250, status: "2.0.0", text: "2.0.0 Ok" };
    const event = recorder.delivered(jobOf({}, { accountKey: account.key }), {
      kind: "delivered",
      reply,
      trace: traceOf(),
    });
    await store.recordEvent({ ...event, messageKey: null });
    return event.id;
  };
  /** Once `count` results are on disk in all; the clock goes on by so much between two looks. */
  const results = async (count: number, goesOnMs = 0): Promise<void> => {
    while (written < count) {
      await settle();
      if (goesOnMs > 0) await clock.advance(goesOnMs);
    }
    await settle();
  };
  const pulled = async (eventId: string) => {
    const { rows } = await store.listEvents(account.key, { eventId }, { limit: 1, cursor: null });
    return { body: rows[0]?.body, ...rows[0]?.deliveries[0] };
  };
  return { clock, store, receiver, endpoint, letters, webhooks, record, results, pulled, account };
}

test("a recorded event is delivered with the bytes that the pull API shows", async () => {
  const { receiver, record, results, pulled, endpoint } = await wired();
  const eventId = await record();
  await results(1);
  const delivery = await pulled(eventId);
  expect(receiver.requests).toMatchObject([{ problem: null, eventId, attempt: 1 }]);
  expect(receiver.requests[0]?.body.toString()).toBe(delivery.body);
  expect(delivery).toMatchObject({
    webhookId: endpoint.id,
    status: "delivered",
    attempts: 1,
    lastStatus: 200,
  });
});

test("ten failed attempts are on disk as a dead letter when it is reported", async () => {
  const { clock, receiver, record, results, pulled, letters } = await wired();
  receiver.answer(() => ({ status: 500 }));
  const eventId = await record();
  for (const [index, delay] of scheduleMs.entries()) {
    await results(index + 1);
    expect(letters).toEqual([]);
    await clock.advance(delay);
  }
  await results(10);
  expect(await pulled(eventId)).toMatchObject({ status: "dead_lettered", attempts: 10, lastStatus: 500 });
  expect(receiver.requests.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(letters).toMatchObject([{ eventId, attempts: 10, lastStatus: 500 }]);
});

test("events of a paused endpoint wait and go out when it is resumed", async () => {
  const { clock, store, receiver, record, results, endpoint, account, webhooks } = await wired();
  await store.updateEndpoint(account.key, endpoint.id, { active: false, updatedAt: clock.now() });
  const ids = [await record(), await record(), await record()];
  await clock.advance(60_000);
  expect(receiver.requests).toEqual([]);
  await store.updateEndpoint(account.key, endpoint.id, { active: true, updatedAt: clock.now() });
  webhooks.kick();
  await results(3);
  expect(new Set(receiver.requests.map(({ eventId }) => eventId))).toEqual(new Set(ids));
});

test("a deleted endpoint gets no more attempts", async () => {
  const { clock, store, receiver, record, results, endpoint, account } = await wired();
  receiver.answer(() => ({ status: 500 }));
  await record();
  await results(1);
  await store.deleteEndpoint(account.key, endpoint.id);
  await clock.advance(86_400_000);
  expect(receiver.requests).toHaveLength(1);
});

test("each of an account's many endpoints gets every event once, those of before a start too", async () => {
  const { clock, store, receiver, record, results, endpoint, webhooks } = await wired({ started: false });
  const mint = createIdMint();
  for (let n = 1; n < 12; n++)
    await store.createEndpoint({ ...endpoint, id: mint("whk", clock.now()), url: `${receiver.url}/${n}` });
  const ids = new Set<string>();
  for (let n = 0; n < 40; n++) ids.add(await record());
  await webhooks.start();
  for (let n = 0; n < 40; n++) ids.add(await record());
  await results(12 * 80, 1);
  expect(receiver.requests).toHaveLength(12 * 80);
  const got = new Map<string, number>();
  for (const { eventId } of receiver.requests) got.set(eventId, (got.get(eventId) ?? 0) + 1);
  expect([...got.values()]).toEqual(Array.from(ids, () => 12));
});
