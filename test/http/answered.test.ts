// An Idempotency-Key on every route that changes something, over a real store: one effect and equal answers however many
// requests race, nothing kept of a failure, and all of it forgotten after a day.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, newMessage, newSuppression } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text, type Answer } from "./harness.ts";
import { addDomain, startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let account: number;
let tests = 0;
let kicks = 0;

beforeAll(async () => {
  http = await startStored((opened) => ({
    webhooks: {
      retryNow: () => void kicks++,
      checkUrl: () => Promise.resolve(),
      test: () =>
        Promise.resolve({
          delivered: true,
          status: 200,
          durationMs: ++tests,
          eventId: `evt_${"0".repeat(26)}`,
          failure: null,
        }),
    },
    domains: {
      add: addDomain(opened),
      verify: (domain) => Promise.resolve({ ...domain, checkedAt: clock.now() + tests++ }),
    },
  }));
  ({ store, clock } = http);
  account = http.account.key;
  await http.ask({
    method: "PATCH",
    path: "/v1/accounts/default",
    admin: true,
    body: { limits: { webhooks: 200 } },
  });
});
afterAll(() => http.stop());
beforeEach(() => clock.advance(1000));

const ask = (key: string | null, method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({
    method,
    path,
    ...(body === undefined ? {} : { body }),
    headers: key === null ? {} : { "idempotency-key": key },
  });
const replayed = (answer: Answer): boolean => answer.headers["idempotency-replayed"] === "true";
const page = { limit: 200, cursor: null };
const newWebhook = async (): Promise<string> =>
  text((await ask(null, "POST", "/v1/webhooks", { url: "https://a.example/" })).json["id"]);
const newDomain = async (name: string): Promise<string> =>
  text((await ask(null, "POST", "/v1/domains", { name })).json["name"]);
const waiting = async (to: string): Promise<string> => {
  const message = newMessage({ accountKey: account, to: [to], at: clock.now() });
  await accept(store, message);
  return message.message.id;
};

interface Case {
  method: string;
  status: number;
  path(): Promise<string>;
  body?: unknown;
  /** How many times it has had its effect. */
  effects?(path: string): Promise<number>;
}
const hooks = async (): Promise<number> => (await store.listEndpoints(account)).length;
const cases: Record<string, Case> = {
  "creating a webhook": {
    method: "POST",
    status: 201,
    path: async () => "/v1/webhooks",
    body: { url: "https://b.example/hook" },
    effects: hooks,
  },
  "changing a webhook": {
    method: "PATCH",
    status: 200,
    path: async () => `/v1/webhooks/${await newWebhook()}`,
    body: { active: false, backlog: "discard", description: "x" },
  },
  "rotating a secret": {
    method: "POST",
    status: 200,
    path: async () => `/v1/webhooks/${await newWebhook()}/rotate_secret`,
  },
  "deleting a webhook": {
    method: "DELETE",
    status: 204,
    path: async () => `/v1/webhooks/${await newWebhook()}`,
    effects: async () => -(await hooks()),
  },
  "testing a webhook": {
    method: "POST",
    status: 200,
    path: async () => `/v1/webhooks/${await newWebhook()}/test`,
    effects: async () => tests,
  },
  "adding suppressions": {
    method: "POST",
    status: 201,
    path: async () => "/v1/suppressions",
    body: { emails: ["one@s.test", "two@s.test"] },
    effects: async () => (await store.listSuppressions(account, { domain: "s.test" }, page)).rows.length / 2,
  },
  "removing a suppression": {
    method: "DELETE",
    status: 204,
    async path() {
      await store.addSuppressions([newSuppression(account, "gone@r.test")], clock.now());
      return "/v1/suppressions/gone@r.test";
    },
  },
  "canceling a message": {
    method: "POST",
    status: 200,
    path: async () => `/v1/messages/${await waiting("x@c.test")}/cancel`,
  },
  "adding a domain": {
    method: "POST",
    status: 201,
    path: async () => "/v1/domains",
    body: { name: "added.example" },
    effects: async () => (await store.listDomains(account)).length,
  },
  "verifying a domain": {
    method: "POST",
    status: 200,
    path: async () => `/v1/domains/${await newDomain("verified.example")}/verify`,
  },
  "deleting a domain": {
    method: "DELETE",
    status: 204,
    path: async () => `/v1/domains/${await newDomain("deleted.example")}`,
  },
};

test.each(Object.entries(cases))(
  "%s: fifty requests with one key have one effect and one answer",
  async (name, { method, status, path, body, effects }) => {
    const where = await path();
    const before = await effects?.(where);
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(name, method, where, body)));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([status]));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers["location"])).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers["x-request-id"])).size).toBe(50);
    expect(answers.filter(replayed)).toHaveLength(49);
    if (before !== undefined) expect((await effects?.(where)) ?? 0).toBe(before + 1);
    const other = await ask(name, method === "DELETE" ? "POST" : method, "/v1/suppressions", {
      emails: ["o@o.test"],
    });
    if (method === "POST" || method === "DELETE")
      expect([other.status, other.json["code"]]).toEqual([409, "duplicate_idempotency_key"]);
  },
);

test("a secret that was answered is answered again", async () => {
  const first = await ask("secret", "POST", "/v1/webhooks", { url: "https://c.example/" });
  const second = await ask("secret", "POST", "/v1/webhooks", { url: "https://c.example/" });
  expect([replayed(second), second.json]).toEqual([true, first.json]);
  expect(text(second.json["secret"])).toHaveLength(64);
  expect(second.headers["location"]).toBe(`/v1/webhooks/${text(first.json["id"])}`);
});

test("a rotation keeps the old secret for its overlap, a day unless it says otherwise, none for 0", async () => {
  const hook = await newWebhook();
  const at = async () => {
    const endpoint = await store.endpoint(account, hook);
    if (!endpoint) throw new Error("no endpoint");
    return endpoint;
  };
  const old = (await at()).secret;
  const rotate = (body?: unknown) => ask(null, "POST", `/v1/webhooks/${hook}/rotate_secret`, body);
  const first = await rotate();
  const secret = text(first.json["secret"]);
  expect([first.status, secret.length, secret === old]).toEqual([200, 64, false]);
  const until = clock.now() + 86_400_000;
  expect(await at()).toMatchObject({ secret, previousSecret: old, previousSecretUntil: until });
  expect(first.json["previous_secret_until"]).toBe(new Date(until).toISOString());
  expect((await rotate({ overlap_seconds: 0 })).json["previous_secret_until"]).toBeNull();
  expect(await at()).toMatchObject({ previousSecret: null, previousSecretUntil: null });
  for (const seconds of [-1, 604_801, 1.5, "60", null])
    expect((await rotate({ overlap_seconds: seconds })).json["field"]).toBe("overlap_seconds");
  expect((await rotate({ overlap_seconds: 604_800 })).status).toBe(200);
  expect((await ask(null, "POST", "/v1/webhooks/whk_none/rotate_secret")).status).toBe(404);
});

test("the format of a webhook is svc unless it says otherwise, and changes", async () => {
  const made = await ask(null, "POST", "/v1/webhooks", { url: "https://f.example/", format: "standard" });
  const path = `/v1/webhooks/${text(made.json["id"])}`;
  expect([made.status, made.json["format"]]).toEqual([201, "standard"]);
  expect((await ask(null, "PATCH", path, { format: "both" })).json["format"]).toBe("both");
  expect((await ask(null, "PATCH", path, { format: "hex" })).json["field"]).toBe("format");
  const plain = await ask(null, "GET", `/v1/webhooks/${await newWebhook()}`);
  expect([plain.json["format"], plain.json["secret"]]).toEqual(["svc", undefined]);
});

test("a failure is not kept: the same key works once what was wrong is mended", async () => {
  expect((await ask("mended", "DELETE", "/v1/suppressions/late@f.test")).status).toBe(404);
  await store.addSuppressions([newSuppression(account, "late@f.test")], clock.now());
  const done = await ask("mended", "DELETE", "/v1/suppressions/late@f.test");
  expect([done.status, replayed(done)]).toEqual([204, false]);
  const again = await ask("mended", "DELETE", "/v1/suppressions/late@f.test");
  expect([again.status, replayed(again), again.text]).toEqual([204, true, ""]);

  const id = await waiting("y@c.test");
  await ask(null, "POST", `/v1/messages/${id}/cancel`);
  expect((await ask("late", "POST", `/v1/messages/${id}/cancel`)).status).toBe(409);
  expect(await store.idempotent(account, false, "late", 0)).toBeNull();
});

test("a key is forgotten after 24 hours, and stands for all routes alike until then", async () => {
  const create = () => ask("day", "POST", "/v1/webhooks", { url: "https://d.example/" });
  const first = await create();
  await clock.advance(24 * 3_600_000 - 1);
  expect((await create()).json["id"]).toBe(first.json["id"]);
  expect((await ask("day", "POST", "/v1/suppressions", { emails: ["z@d.test"] })).status).toBe(409);
  await clock.advance(2);
  const later = await create();
  expect([later.status, replayed(later)]).toEqual([201, false]);
  expect(later.json["id"]).not.toBe(first.json["id"]);
});

test("fifty different keys have fifty effects, each with the answer of its own", async () => {
  const emails = Array.from({ length: 50 }, (_, n) => `n${n % 25}@many.test`);
  const answers = await Promise.all(
    emails.map((email, n) => ask(`many-${n}`, "POST", "/v1/suppressions", { emails: [email] })),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(25);
  expect(answers.filter(({ json }) => Number(json["already_suppressed"]) === 1)).toHaveLength(25);
  expect(answers.flatMap(({ json }) => list(json["data"]).map((row) => text(row["email"])))).toEqual(emails);
  const hooksBefore = await hooks();
  await Promise.all(
    emails.map((_, n) => ask(`hook-${n}`, "POST", "/v1/webhooks", { url: "https://e.example/" })),
  );
  expect(await hooks()).toBe(hooksBefore + 50);
});

test("a rehearsed write leaves nothing behind: the queue's count, and webhooks that are paused", async () => {
  const id = await waiting("z@c.test");
  const before = await store.queueCounts();
  const { json } = await ask("count", "POST", `/v1/messages/${id}/cancel`);
  expect(list(json["recipients"])[0]?.["status"]).toBe("canceled");
  expect((await store.queueCounts()).queued).toBe(before.queued - 1);
  const hook = await newWebhook();
  kicks = 0;
  await ask("pause", "PATCH", `/v1/webhooks/${hook}`, { active: false });
  await ask("resume", "PATCH", `/v1/webhooks/${hook}`, { active: true });
  expect([(await store.endpoint(account, hook))?.active, kicks]).toEqual([true, 1]);
});

test("validating keeps nothing, so its key stays free", async () => {
  expect((await ask("free", "POST", "/v1/messages/validate", [])).status).toBe(422);
  expect((await ask("free", "POST", "/v1/suppressions", { emails: ["free@v.test"] })).status).toBe(201);
});
