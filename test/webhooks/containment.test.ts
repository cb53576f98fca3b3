// What one endpoint, one result or one listener brings out stays its own: the others go on, and it is tried again.
import { expect, test } from "vitest";
import { silentLog, type Log } from "../../src/log.ts";
import type { DeliveryResult } from "../../src/model/webhook-delivery.ts";
import { createDispatcher } from "../../src/webhooks/dispatcher.ts";
import type { Answer } from "../../src/webhooks/post.ts";
import type { DeadLetter } from "../../src/webhooks/results.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { MemoryStore } from "./memory-store.ts";
import { scheduleMs, secret } from "./rig.ts";

/** Two endpoints; every attempt is answered at once, 200 unless a test says otherwise. */
function bench() {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const tried: [endpoint: number, event: string, attempt: number][] = [];
  const logged: string[] = [];
  const letters: DeadLetter[] = [];
  const answer = { status: 200, body: null as string | null };
  /** What is answered 200 whatever the others get. */
  const taken = new Set<string>();
  const log: Log = { ...silentLog, error: (_fields, text) => void logged.push(text) };
  const hooks = { letter: (letter: DeadLetter): void => void letters.push(letter) };
  const dispatcher = createDispatcher({
    store,
    clock,
    scheduleMs,
    owner: "boot",
    log,
    onDeadLetter: (letter) => hooks.letter(letter),
    post: {
      open: () => {
        throw new Error("no network here");
      },
      post(_connect, endpoint, event, attempt) {
        tried.push([endpoint.key, event.id, attempt]);
        const said = taken.has(event.id) ? { status: 200, body: null } : answer;
        const came: Answer = { ...said, delivered: said.status < 300, durationMs: 1, failure: null };
        return Promise.resolve(came);
      },
    },
  });
  for (const key of [1, 2]) store.addEndpoint({ key, url: `https://${key}.example/`, secret });
  return { clock, store, tried, logged, letters, answer, taken, hooks, dispatcher };
}
const attemptsOf = (store: MemoryStore): number[] => store.rows.map(({ attempts }) => attempts);

test("a pause between claim and attempt costs no attempt, of a first one and of a retry", async () => {
  const { clock, store, tried, answer, dispatcher } = bench();
  const pauseAfterClaim = (active: boolean) => {
    const claim = MemoryStore.prototype.claimDeliveries;
    store.claimDeliveries = async function (wanted) {
      const claimed = await claim.call(this, wanted);
      const endpoint = this.endpoints.get(1);
      if (endpoint) endpoint.active = active;
      return claimed;
    };
  };
  store.record(1, 3);
  pauseAfterClaim(false);
  dispatcher.start();
  await clock.advance(60_000);
  expect(tried).toEqual([]);
  expect(store.rows.map(({ attempts, dueAt }) => [attempts, dueAt])).toEqual(Array(3).fill([0, 0]));

  pauseAfterClaim(true);
  answer.status = 500;
  store.addEndpoint({ key: 1, url: "https://1.example/", secret });
  dispatcher.kick();
  await settle();
  expect(attemptsOf(store)).toEqual([1, 1, 1]);
  pauseAfterClaim(false);
  await clock.advance(30_000);
  expect(tried).toHaveLength(3);
  expect(attemptsOf(store)).toEqual([1, 1, 1]);
  expect(store.rows.every(({ dueAt }) => dueAt > 0 && dueAt <= clock.now())).toBe(true);

  pauseAfterClaim(true);
  store.addEndpoint({ key: 1, url: "https://1.example/", secret });
  dispatcher.kick();
  await settle();
  expect(tried.slice(3).map(([, , attempt]) => attempt)).toEqual([2, 2, 2]);
});

test("a result that cannot be written is left out, the others of its batch are written, and its delivery is given back", async () => {
  const { clock, store, tried, logged, dispatcher } = bench();
  const write = MemoryStore.prototype.settleDeliveries;
  let broken = true;
  store.settleDeliveries = async function (results: DeliveryResult[]) {
    if (broken && results.some(({ eventSeq }) => eventSeq === 2)) throw new Error("settleDeliveries: a bug");
    await write.call(this, results);
  };
  store.record(1, 3);
  store.record(2, 1);
  dispatcher.start();
  await settle();
  await clock.advance(0);
  expect(store.rows.map(({ status }) => status)).toEqual(["delivered", "pending", "delivered", "delivered"]);
  expect(logged).toContain("a webhook result was not recorded");
  broken = false;
  store.record(2, 1);
  dispatcher.kick();
  await settle();
  expect(store.rows.at(-1)?.status).toBe("delivered");
  await clock.advance(31_000);
  expect(tried.filter(([, event]) => event === "evt_2").map(([, , attempt]) => attempt)).toEqual([1, 2]);
  expect(store.rows[1]?.status).toBe("delivered");
});

test("what a receiver said is let go of where the result cannot be written with it", async () => {
  const { store, answer, dispatcher } = bench();
  const write = MemoryStore.prototype.settleDeliveries;
  store.settleDeliveries = async function (results: DeliveryResult[]) {
    if (results.some(({ responseBody }) => responseBody !== null)) throw new Error("settleDeliveries: a bug");
    await write.call(this, results);
  };
  Object.assign(answer, { status: 500, body: "poison" });
  store.record(1, 2);
  dispatcher.start();
  await settle();
  expect(store.results).toMatchObject(Array(2).fill({ status: 500, responseBody: null }));
});

test("an endpoint that brings out a fault rests for a while; the other one gets its events meanwhile", async () => {
  const { clock, store, tried, logged, dispatcher } = bench();
  const find = MemoryStore.prototype.endpointByKey;
  let broken = true;
  store.endpointByKey = async function (key) {
    if (broken && key === 1) throw new Error("a bug");
    return find.call(this, key);
  };
  store.record(1, 1);
  dispatcher.start();
  await settle();
  expect(logged).toEqual(["a webhook endpoint is paused after a fault of this program"]);
  for (let i = 0; i < 5; i++) {
    store.record(2, 40);
    dispatcher.kick();
    await settle();
  }
  expect(tried.filter(([endpoint]) => endpoint === 2)).toHaveLength(200);
  expect(logged).toHaveLength(1);
  broken = false;
  await clock.advance(31_000);
  expect(tried.filter(([endpoint]) => endpoint === 1)).toEqual([[1, "evt_1", 2]]);
});

test("a fault that recurs ends with the last attempt: the delivery is a dead letter, and no more is posted", async () => {
  const { clock, store, tried, answer, letters, dispatcher } = bench();
  const write = MemoryStore.prototype.settleDeliveries;
  answer.status = 500;
  store.settleDeliveries = async function (results: DeliveryResult[]) {
    if (results.some(({ attempt }) => attempt <= 10)) throw new Error("settleDeliveries: a bug");
    await write.call(this, results);
  };
  store.record(1, 1);
  dispatcher.start();
  for (let i = 0; i < 40; i++) await clock.advance(31_000);
  expect(tried.map(([, , attempt]) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(store.rows.map(({ status }) => status)).toEqual(["dead_lettered"]);
  expect(letters).toMatchObject([{ eventId: "evt_1", attempts: 10 }]);
});

test("a dead letter that cannot be reported harms no other one", async () => {
  const { store, letters, answer, hooks, dispatcher } = bench();
  answer.status = 500;
  store.record(1, 3);
  for (const row of store.rows) row.attempts = 9;
  hooks.letter = (letter) => {
    if (letter.eventId === "evt_2") throw new Error("no mail today");
    letters.push(letter);
  };
  dispatcher.start();
  await settle();
  expect(letters.map(({ eventId }) => eventId)).toEqual(["evt_1", "evt_3"]);
  expect(store.rows.every(({ status }) => status === "dead_lettered")).toBe(true);
});

test("of an endpoint that fails en masse about one answer a second is kept, and every attempt", async () => {
  const { clock, store, answer, taken, dispatcher } = bench();
  Object.assign(answer, { status: 500, body: "down" });
  for (let event = 5; event <= 350; event += 5) taken.add(`evt_${event}`); // it is not failing altogether
  store.record(1, 300);
  dispatcher.start();
  for (let i = 0; i < 20; i++) await settle();
  const kept = (): number => store.results.filter(({ responseBody }) => responseBody === "down").length;
  expect([store.results.length, kept()]).toEqual([300, 100]);
  await clock.advance(10_000);
  store.record(1, 50);
  dispatcher.kick();
  for (let i = 0; i < 5; i++) await settle();
  expect([store.results.length, kept()]).toEqual([350, 110]);
});
