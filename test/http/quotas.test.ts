// Rates and daily quotas of one key or account, set over the admin socket and met on the public listener and by SMTP.
// Over a real store and a real submission, whose queue sends nothing.
import { afterEach, beforeEach, expect, test } from "vitest";
import { quotasOf } from "../../src/access/quotas.ts";
import type { Store } from "../../src/store/store.ts";
import type { Submission } from "../../src/submission/submission.ts";
import { newDirectory, newSuppression, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Harness } from "./harness.ts";
import { submissionOver } from "./stored.ts";

let http: Harness;
let store: Store;
let clock: ManualClock;
let submission: Submission;
let dataDir: string;
let key: string;
let keyId: string;

const open = async (): Promise<void> => {
  store = await openSqlite(dataDir, clock);
  submission = submissionOver({ store, clock }, "shop.example");
  http = await startHttp({ opened: { store, clock }, submission });
};
beforeEach(async () => {
  clock = new ManualClock();
  dataDir = newDirectory();
  await open();
  const made = await operator("POST", "/v1/keys", { name: "shop", scope: "send" });
  key = text(made.json["key"]);
  keyId = text(made.json["id"]);
});
afterEach(() => http.stop());

const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ admin: true, method, path, ...(body === undefined ? {} : { body }) });
const message = { from: "a@shop.example", to: "b@x.test", subject: "s", text: "t" };
const send = (more: Record<string, string> = {}, body: unknown = message, by = key): Promise<Answer> =>
  http.ask({ method: "POST", path: "/v1/messages", key: by, body, headers: more });
const batch = (messages: unknown[]): Promise<Answer> =>
  http.ask({ method: "POST", path: "/v1/messages/batch", key, body: { messages } });
const limitKey = (body: unknown) => operator("PATCH", `/v1/keys/${keyId}`, body);
const limitAccount = (body: unknown) => operator("PATCH", "/v1/accounts/default", body);
const kept = async (): Promise<number> =>
  (await store.listMessages(http.account.key, {}, { limit: 200, cursor: null })).rows.length;
/** How many of so many reads at one moment pass. */
const reads = async (times: number, by = key): Promise<number> => {
  const asked = Array.from({ length: times }, () => http.ask({ path: "/v1/messages", key: by }));
  return (await Promise.all(asked)).filter(({ status }) => status === 200).length;
};

test("a key's rate applies from the next request, and what was spent stays spent", async () => {
  expect(await reads(110)).toBe(100);
  await limitKey({ rates: { "messages-read": { burst: 150, per_second: 10 } } });
  expect(await reads(110)).toBe(50);
  const { headers } = await http.ask({ path: "/v1/messages", key });
  expect([headers["x-ratelimit-limit"], headers["x-ratelimit-bucket"]]).toEqual(["150", "messages-read"]);
  await clock.advance(1000);
  expect(await reads(20)).toBe(10);
  await limitKey({ rates: { "messages-read": { burst: 20, per_second: 10 } } });
  expect(await reads(1)).toBe(0);
  await clock.advance(60_000);
  expect(await reads(30)).toBe(20);
  await limitKey({ rates: { "messages-read": null } });
  expect((await http.ask({ path: "/v1/messages", key })).headers["x-ratelimit-limit"]).toBe("100");
});

test("a key's rate stands above its account's, the account's above everybody's", async () => {
  await limitAccount({ rates: { "messages-read": { burst: 5, per_second: 1 } } });
  const other = (await http.key("send")).value;
  await limitKey({ rates: { "messages-read": { burst: 8, per_second: 1 } } });
  expect([await reads(12), await reads(12, other)]).toEqual([8, 5]);
  await operator("POST", "/v1/accounts", { name: "else" });
  const theirs = await http.ask({
    admin: true,
    method: "POST",
    path: "/v1/keys",
    body: { name: "k", scope: "send" },
    headers: { "x-svc-account": "else" },
  });
  expect(await reads(12, text(theirs.json["key"]))).toBe(12);
});

test("the bucket of all of an account's keys together is raised and lowered with the account", async () => {
  await limitAccount({ rates: { account: { burst: 6, per_second: 1 } } });
  const other = (await http.key("send")).value;
  expect([await reads(4), await reads(4, other)]).toEqual([4, 2]);
  const refused = await http.ask({ path: "/v1/messages", key });
  expect(refused.json["error"]).toMatchObject({ bucket: "account" });
  expect((await limitKey({ rates: { account: { burst: 6, per_second: 1 } } })).status).toBe(422);
  expect((await limitAccount({ rates: { unauthenticated: null } })).status).toBe(422);
  for (const rate of [{ burst: 0, per_second: 1 }, { burst: 1 }, { burst: 1.5, per_second: 1 }, 5])
    expect((await limitAccount({ rates: { default: rate } })).status).toBe(422);
});

test("a key's daily quota is 429 quota until the next midnight of UTC", async () => {
  await limitKey({ daily_quota: 3 });
  const answers = await Promise.all(Array.from({ length: 10 }, () => send()));
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(3);
  expect(await kept()).toBe(3);
  const { status, headers, json } = await send();
  const midnight = Date.parse("2026-11-28T00:00:00Z");
  expect([status, json["error"]]).toEqual([
    429,
    expect.objectContaining({ code: "rate_limit_exceeded", bucket: "quota", retry_after_seconds: 54_000 }),
  ]);
  expect(headers).toMatchObject({
    "retry-after": "54000",
    "x-ratelimit-bucket": "quota",
    "x-ratelimit-limit": "3",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": String(midnight / 1000),
  });
  await clock.advance(midnight - clock.now() - 1);
  expect((await send()).headers["retry-after"]).toBe("1");
  await clock.advance(1);
  expect((await send()).status).toBe(202);
});

test("an account's quota counts all its keys, batches message by message and SMTP; the operator's sends go on", async () => {
  await limitAccount({ daily_quota: 5 });
  const other = (await http.key("send", { test: true })).value;
  expect((await send()).status).toBe(202);
  expect((await send({}, message, other)).status).toBe(202);
  expect((await batch([message, { nonsense: true }, message])).status).toBe(200);
  const account = await store.accountByName("default");
  if (!account) throw new Error("no account");
  const relay = (): Promise<{ id: string }> =>
    submission.relay(
      { account, test: false, apiKey: null, quotas: quotasOf(account, null) },
      { mailFrom: "a@shop.example", rcptTo: [address], smtpUtf8: false },
      (async function* () {
        yield Buffer.from("From: a@shop.example\r\nSubject: s\r\n\r\nhi\r\n");
      })(),
      { ip: "192.0.2.1", helo: "x", protocol: "ESMTPSA" },
    );
  expect((await relay()).id).toMatch(/^msg_/);
  await expect(relay()).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  expect((await send()).status).toBe(429);
  expect(await kept()).toBe(5);
  expect((await operator("POST", "/v1/messages", message)).status).toBe(202);
});
const address = { email: "b@x.test", ascii: "x.test", domain: "x.test", local: "b", smtpUtf8: false };

test("a mail that began before midnight and ends after it gives no quota back", async () => {
  await limitAccount({ daily_quota: 2 });
  const account = await store.accountByName("default");
  if (!account) throw new Error("no account");
  const end = Promise.withResolvers<void>();
  const slow = submission.relay(
    { account, test: false, apiKey: null, quotas: quotasOf(account, null) },
    { mailFrom: "a@shop.example", rcptTo: [address], smtpUtf8: false },
    (async function* () {
      yield Buffer.from("From: a@shop.example\r\nSubject: s\r\n\r\nhi\r\n");
      await end.promise;
    })(),
    { ip: "192.0.2.1", helo: "x", protocol: "ESMTPSA" },
  );
  await clock.advance(86_400_000 - (clock.now() % 86_400_000));
  for (let n = 0; n < 2; n++) expect((await send()).status).toBe(202);
  end.resolve();
  await expect(slow).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  expect((await send()).status).toBe(429);
  expect(await kept()).toBe(2);
});

test("a batch that would pass a quota is refused as a whole", async () => {
  await limitKey({ daily_quota: 5 });
  expect((await batch([message, message, message])).status).toBe(200);
  const refused = await batch([message, message, message]);
  expect([refused.status, refused.json["error"]?.["bucket"]]).toEqual([429, "quota"]);
  expect(await kept()).toBe(3);
  expect((await batch([message, message])).status).toBe(200);
});

test("what is refused for another reason uses nothing up", async () => {
  await limitKey({ daily_quota: 1 });
  await store.addSuppressions([newSuppression(http.account.key, "no@s.test")], clock.now());
  expect((await send({}, { ...message, to: "no@s.test" })).status).toBe(422);
  expect((await send({}, {})).status).toBe(422);
  expect((await http.ask({ method: "POST", path: "/v1/messages/validate", key, body: message })).status).toBe(
    200,
  );
  expect((await send()).status).toBe(202);
});

test("a repeated request gets its answer though the quota is used up, and uses nothing", async () => {
  await limitKey({ daily_quota: 1 });
  const once = { "idempotency-key": "a" };
  const first = await send(once);
  const second = await send(once);
  expect([second.status, second.text]).toEqual([202, first.text]);
  expect((await send({ "idempotency-key": "b" })).status).toBe(429);
});

test("a quota outlives a restart, is raised at once, and goes with null", async () => {
  await limitKey({ daily_quota: 2 });
  expect([(await send()).status, (await send()).status, (await send()).status]).toEqual([202, 202, 429]);
  await http.stop();
  await open();
  expect((await send()).status).toBe(429);
  await limitKey({ daily_quota: 3 });
  expect([(await send()).status, (await send()).status]).toEqual([202, 429]);
  await limitKey({ daily_quota: 0 });
  expect((await send()).status).toBe(429);
  await limitKey({ daily_quota: null });
  expect((await send()).status).toBe(202);
  const { json } = await operator("GET", `/v1/keys/${keyId}`);
  expect(json["daily_quota"]).toBeNull();
  expect(
    list((await operator("GET", "/v1/keys")).json["data"]).every((row) => row["daily_quota"] === null),
  ).toBe(true);
});
