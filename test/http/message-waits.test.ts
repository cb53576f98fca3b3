// GET /v1/messages/{id}/waits over the operator's socket, with the real store: each rule in words.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { QueueWait } from "../../src/queue/runner.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { accept, beginBoot, newMessage, owner, settlementOf } from "../store/values.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, type Harness } from "./harness.ts";

const clock = new ManualClock();
const limiter = { group: "x.test", address: null, taken: 5, factor: 0.5, limit: 5, perSecond: 50, waitMs: 0 };
const at = clock.now();
const slowed = { since: at, at, reply: "421 4.7.28 too fast" };
let held: QueueWait = { rule: "turn", ms: null, group: "x.test", limiters: [] };
const asked: [queueName: string, claimed: boolean][] = [];
let store: Store;
let http: Harness;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({
    opened: { store, clock },
    queue: {
      waitOf(queueName, claimed) {
        asked.push([queueName, claimed]);
        return held;
      },
    },
  });
});
afterAll(() => http.stop());

const waits = async (id: string) =>
  list((await http.ask({ admin: true, path: `/v1/messages/${id}/waits` })).json["data"]);

async function made(over: Partial<Parameters<typeof newMessage>[0]> = {}): Promise<string> {
  const message = newMessage({ accountKey: http.account.key, to: ["ann@x.test"], at: clock.now(), ...over });
  await accept(store, message);
  return message.message.id;
}

test("due mail waits for what the queue says, with when and whose limits", async () => {
  const id = await made();
  held = { rule: "rate", ms: 9_000, group: "x.test", limiters: [{ ...limiter, slowed }] };
  const until = new Date(clock.now() + 9_000).toISOString();
  const [wait] = await waits(id);
  expect(wait).toMatchObject({
    recipient: "ann@x.test",
    status: "queued",
    rule: "rate",
    until,
    group: "x.test",
  });
  expect(wait?.["why"]).toBe(
    `the rate at x.test allows the next message at ${until}; slowed to 50 % since ${new Date(at).toISOString()} by the reply: 421 4.7.28 too fast`,
  );
  expect(asked.at(-1)?.[0]).toMatch(/\/x\.test$/);
  held = { rule: "connections", ms: null, group: "x.test", limiters: [{ ...limiter, slowed: null }] };
  expect((await waits(id))[0]?.["why"]).toBe("5 attempts run at x.test, as many as may");
});

test("of a paused account it is the pause that holds its mail, and no key of an account is shown any of it", async () => {
  const id = await made();
  await store.pauseAccount(http.account.key, clock.now(), "too many bounces");
  expect(await waits(id)).toMatchObject([
    { rule: "account", why: "sending of the account default is paused: too many bounces" },
  ]);
  await store.resumeAccount(http.account.key, null);
  expect((await http.ask({ path: `/v1/messages/${id}/waits` })).status).toBe(404);
  expect(
    (await http.ask({ admin: true, path: "/v1/messages/msg_01hzzzzzzzzzzzzzzzzzzzzzzz/waits" })).status,
  ).toBe(404);
});

test("mail for later waits for its time, and a deferred recipient for its next attempt", async () => {
  const later = await made({ sendAt: clock.now() + 3_600_000 });
  const until = new Date(clock.now() + 3_600_000).toISOString();
  expect(await waits(later)).toMatchObject([{ rule: "send_at", until, group: null }]);
  const id = await made({ to: ["ann@deferred.test"] });
  await beginBoot(store, owner);
  const claim = { owner, queueName: "deferred.test", limit: 9, now: clock.now() };
  for (const job of (await store.claimDue(claim)).jobs)
    await store.settle(
      settlementOf(job, clock.now(), { outcome: "deferred", nextAttemptAt: clock.now() + 3_600_000 }),
    );
  expect(await waits(id)).toMatchObject([
    { rule: "retry", status: "deferred", until, why: `its next attempt is due at ${until}` },
  ]);
});

test("mail that is put off, where nobody decided its next attempt, waits for a cap of its pool's warm-up", async () => {
  const sendAt = clock.now() + 60_000;
  const queueName = `${http.account.key}.default/later.test`;
  const id = await made({ to: ["ann@later.test"], queueName, sendAt });
  expect((await waits(id))[0]).toMatchObject({ rule: "send_at", until: new Date(sendAt).toISOString() });
  await clock.advance(60_000);
  const { jobs } = await store.claimDue({ owner, queueName, limit: 1, now: clock.now() });
  const release = async (claimed: typeof jobs): Promise<string> => {
    const until = clock.now() + 3_600_000;
    await store.release(
      owner,
      claimed.map(({ key }) => key),
      until,
    );
    return new Date(until).toISOString();
  };
  let until = await release(jobs);
  const over = new Date(sendAt + 6 * 3_600_000).toISOString();
  expect((await waits(id))[0]).toMatchObject({
    rule: "warmup",
    until,
    why: `every address of the pool default has sent there what its warm-up allows today (svc ips warmup status); it is looked at again at ${until}, and goes over the cap at ${over}`,
  });

  // The same for mail that was deferred once.
  await clock.advance(3_600_000);
  const again = async () => (await store.claimDue({ owner, queueName, limit: 1, now: clock.now() })).jobs;
  for (const job of await again()) {
    const next = { outcome: "deferred", nextAttemptAt: clock.now() + 60_000 } as const;
    await store.settle(settlementOf(job, clock.now(), next));
  }
  expect((await waits(id))[0]).toMatchObject({ rule: "retry", status: "deferred" });
  await clock.advance(60_000);
  until = await release(await again());
  expect((await waits(id))[0]).toMatchObject({ rule: "warmup", status: "deferred", until });
});
