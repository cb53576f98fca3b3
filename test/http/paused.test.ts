// What a paused account may still do, over HTTP and with the real store.
import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { NewMessage } from "../../src/model/acceptance.ts";
import { createAbuseGuard } from "../../src/sending-pause/abuse-guard.ts";
import { createSendingPause } from "../../src/sending-pause/sending-pause.ts";
import type { Store } from "../../src/store/store.ts";
import { accept, newDirectory, newMessage, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, text, type Ask, type Harness } from "./harness.ts";

const clock = new ManualClock();
let store: Store;
let http: Harness;
let id: string;
let held: NewMessage;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  const deps = { store, clock, log: silentLog };
  const pauses = createSendingPause(deps);
  const guard = createAbuseGuard({ ...deps, pauses, onPaused: () => Promise.resolve(), shares: null });
  http = await startHttp({ opened: { store, clock }, guard });
  const message = newMessage({ accountKey: http.account.key, at: clock.now() });
  await accept(store, message);
  ({ id } = message.message);
  held = newMessage({ accountKey: http.account.key, at: clock.now(), queueName: "held.test" });
  await accept(store, held);
  await store.pauseAccount(http.account.key, clock.now(), "12.5 % hard bounces");
});
afterAll(() => http.stop());

const sends: Ask[] = [
  { method: "POST", path: "/v1/messages", body: {} },
  { method: "POST", path: "/v1/messages/batch", body: { messages: [{}, {}] } },
  { method: "POST", path: "/v1/messages/validate", body: {} },
];

test.each(sends)("a send is 403 account_paused, with why and what ends it: $path", async (ask) => {
  const { status, json, headers } = await http.ask(ask);
  expect([status, headers["content-type"]]).toEqual([403, "application/json"]);
  expect(json["error"]).toMatchObject({
    code: "account_paused",
    message:
      "Sending is paused: 12.5 % hard bounces. The operator ends that with: svc accounts resume default",
  });
});

test.each(sends)("for test keys and the operator too: $path", async (ask) => {
  const { value } = await http.key("send", { test: true });
  expect((await http.ask({ ...ask, key: value })).status).toBe(403);
  expect((await http.ask({ ...ask, admin: true })).status).toBe(403);
});

test("the scope and the rate are judged before it, headers, JSON and a replay after it", async () => {
  const reader = await http.key("reporting");
  const send = { method: "POST", path: "/v1/messages", body: {} };
  expect((await http.ask({ ...send, key: reader.value })).json["error"]).toMatchObject({
    code: "scope_insufficient",
  });
  const sender = await http.key("send");
  const headers = { "content-type": "text/plain", "x-api-version": "1999-01" };
  const codes = new Set<string>();
  for (let n = 0; n < 201; n++) {
    const { json } = await http.ask({ ...send, key: sender.value, headers, raw: "{" });
    codes.add(text(json["error"]?.["code"]));
  }
  expect([...codes]).toEqual(["account_paused", "rate_limit_exceeded"]);
});

test("everything else goes on: reading, canceling, suppressing", async () => {
  expect((await http.ask({ path: `/v1/messages/${id}` })).status).toBe(200);
  const canceled = await http.ask({ method: "POST", path: `/v1/messages/${id}/cancel`, body: {} });
  expect([canceled.status, canceled.json["status"]]).toEqual([200, "canceled"]);
  const body = { emails: ["a@x.test"] };
  expect((await http.ask({ method: "POST", path: "/v1/suppressions", body })).status).toBe(201);
});

test("the operator sees why, and a resume ends the pause and a suspension with it; held mail follows", async () => {
  const claim = {
    owner: "boot",
    queueName: "held.test",
    limit: 5,
    now: clock.now(),
  };
  expect((await store.claimDue(claim)).jobs).toEqual([]);
  const operator = (method: string, verb = "") =>
    http.ask({ admin: true, method, path: `/v1/accounts/default${verb}` });
  await operator("POST", "/suspend");
  expect((await operator("GET")).json).toMatchObject({
    status: "suspended",
    paused_at: new Date(clock.now()).toISOString(),
    pause_reason: "12.5 % hard bounces",
  });
  const { status, json } = await operator("POST", "/resume");
  expect([status, json["status"], json["paused_at"]]).toEqual([200, "active", null]);
  expect((await http.ask({ method: "POST", path: "/v1/messages", body: [] })).status).toBe(422);
  while ((await store.queueCounts()).held > 0) await clock.advance(1);
  expect((await store.claimDue(claim)).jobs.map(({ message }) => message.id)).toEqual([held.message.id]);
  expect((await operator("POST", "/resume")).status, "twice is no fault").toBe(200);
});
