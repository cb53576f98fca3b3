// Back pressure of the queue over HTTP: limits.max_queue, with real submission and a real store.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createIdMint } from "../../src/ids.ts";
import type { Store } from "../../src/store/store.ts";
import { createSubmission } from "../../src/submission/submit.ts";
import { newDirectory, openSqlite, owner, settlementOf } from "../store/fixtures.ts";
import { FakeRunner, good, makeDomain, poolsNamed, tokens } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, type Answer, type Harness } from "./harness.ts";

const clock = new ManualClock();
const maxQueue = 5;
let store: Store;
let http: Harness;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({
    opened: { store, clock },
    submission: createSubmission({
      store,
      domains: { senderFor: (_account, name) => Promise.resolve({ ok: true, domain: makeDomain(name) }) },
      pools: poolsNamed("default"),
      runner: new FakeRunner(),
      config: { hostname: "mail.svc.test", limits: { maxQueue }, dev: false },
      clock,
      mint: createIdMint(),
      tokens,
    }),
  });
});
afterAll(() => http.stop());

const mail = () => good({ to: ["a@full.test"] });
const send = (headers = {}): Promise<Answer> =>
  http.ask({ method: "POST", path: "/v1/messages", body: mail(), headers });
const unsent = async (): Promise<number> => {
  const { scheduled, queued, deferred, sending, held } = await store.queueCounts();
  return scheduled + queued + deferred + sending + held;
};

test("a full queue is 503 service_overloaded with Retry-After for every send, and takes mail again once it drains", async () => {
  for (let n = 0; n < maxQueue; n++) expect((await send()).status).toBe(202);
  const batch = { messages: [mail(), mail()] };
  for (const refused of [
    await send(),
    await send({ "idempotency-key": "k" }),
    await http.ask({ method: "POST", path: "/v1/messages/batch", body: batch }),
  ]) {
    expect([refused.status, refused.json["code"]]).toEqual([503, "service_overloaded"]);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(refused.json["retry_after_seconds"]).toBe(Number(refused.headers["retry-after"]));
  }
  expect(await unsent()).toBe(maxQueue);
  expect((await http.ask({ path: "/v1/messages" })).status, "reading goes on").toBe(200);
  const now = clock.now();
  const { jobs } = await store.claimDue({
    owner,
    queueName: "1.default/full.test",
    limit: 1,
    now,
  });
  for (const job of jobs) await store.settle(settlementOf(job, now));
  expect((await send()).status, "not within the same second").toBe(503);
  await clock.advance(1000);
  const again = await send({ "idempotency-key": "k" });
  expect([again.status, again.headers["idempotency-replayed"]]).toEqual([202, undefined]);
  expect((await send()).status).toBe(503);
});

test("held mail counts as queued", async () => {
  const claim = {
    owner,
    queueName: "1.default/full.test",
    limit: 10,
    now: clock.now(),
  };
  await store.pauseAccount(http.account.key, clock.now(), "too many bounces");
  expect((await store.claimDue(claim)).jobs).toEqual([]);
  await store.resumeAccount(http.account.key, null);
  expect((await store.queueCounts()).held).toBe(maxQueue);
  expect((await send()).status).toBe(503);
});
