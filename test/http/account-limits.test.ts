// How many webhooks, domains, suppressions and pools an account may have, over a real store: what its keys meet, and what
// the operator sets.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDomains } from "../../src/domains/manage.ts";
import { createIdMint } from "../../src/ids.ts";
import type { Store } from "../../src/store/store.ts";
import { newSuppression } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { fake, text, type Answer } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
beforeAll(async () => {
  http = await startStored((opened) => ({
    domains: createDomains({
      ...opened,
      resolver: fake("resolver", {}),
      config: { hostname: "mail.acme.example", sources: [], publicHost: "mail.acme.example" },
      mint: createIdMint(),
    }),
    webhooks: { checkUrl: () => Promise.resolve(), retryNow: () => undefined },
    pools: { changed: () => Promise.resolve(), canBind: () => Promise.resolve(true) },
  }));
  ({ store, clock } = http);
});
afterAll(() => http.stop());

const hook = { url: "https://hooks.example/x" };
const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  http.ask({ admin: true, method, path, ...(body === undefined ? {} : { body }) });
const key = (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
  http.ask({ method, path, headers, ...(body === undefined ? {} : { body }) });
const limit = (limits: Record<string, number | null>): Promise<Answer> =>
  operator("PATCH", "/v1/accounts/default", { limits });
const statuses = (answers: Answer[]): number[] =>
  answers.map(({ status }) => status).toSorted((x, y) => x - y);

test("requests at once make 50 webhooks and no more, and the refusal says which limit, whose, and what to do", async () => {
  const answers = await Promise.all(Array.from({ length: 60 }, () => key("POST", "/v1/webhooks", hook)));
  expect(statuses(answers)).toEqual([...Array<number>(50).fill(201), ...Array<number>(10).fill(409)]);
  const refused = await key("POST", "/v1/webhooks", hook, { "idempotency-key": "w" });
  expect(refused.json["code"]).toBe("conflict");
  expect(text(refused.json["detail"])).toContain(
    "The account default has 50 webhook endpoints, and may have at most 50",
  );
  expect(text(refused.json["detail"])).toContain("svc accounts set default --limit webhooks=100");
  expect((await operator("POST", "/v1/webhooks", hook)).status, "the operator").toBe(201);
  expect((await limit({ webhooks: 52 })).json["limits"]).toMatchObject({ webhooks: 52, domains: 1000 });
  const made = await key("POST", "/v1/webhooks", hook, { "idempotency-key": "w" });
  const replay = await key("POST", "/v1/webhooks", hook, { "idempotency-key": "w" });
  expect([made.status, replay.status, replay.text === made.text]).toEqual([201, 201, true]);
  expect((await key("POST", "/v1/webhooks", hook)).status).toBe(409);
  expect((await limit({ webhooks: null })).json["limits"]).toMatchObject({ webhooks: 50 });
});

test("suppressions are added as long as the whole request has room; the system's own are never refused", async () => {
  const emails = (from: number, to: number) => ({
    emails: Array.from({ length: to - from }, (_, n) => `n${from + n}@x.test`),
  });
  const add = (from: number, to: number) => key("POST", "/v1/suppressions", emails(from, to));
  await limit({ suppressions: 1500 });
  expect((await add(0, 1000)).status).toBe(201);
  const refused = await add(600, 1501);
  expect([refused.status, refused.json["code"]]).toEqual([409, "conflict"]);
  expect(text(refused.json["detail"])).toContain(
    "1000 suppressions that were added by hand, and may have at most 1500",
  );
  expect((await key("GET", "/v1/suppressions/n1400%40x.test")).status, "nothing was kept").toBe(404);
  expect((await add(600, 1500)).json).toMatchObject({ added: 500, already_suppressed: 400 });
  expect((await add(0, 500)).status, "none is new").toBe(200);
  expect((await add(1500, 1501)).status).toBe(409);
  const found = newSuppression(http.account.key, "bounced@x.test", {
    source: "system",
    reason: "hard_bounce",
  });
  await store.addSuppressions([found], clock.now());
  expect((await key("DELETE", "/v1/suppressions/n0%40x.test")).status).toBe(204);
  expect((await key("DELETE", "/v1/suppressions/bounced%40x.test")).status, "was not counted").toBe(204);
  expect(statuses(await Promise.all([add(1500, 1501), add(1501, 1502)]))).toEqual([201, 409]);
});

test("domains and pools are limited too, before keys are made", async () => {
  await limit({ domains: 1, ip_pools: 2, ip_addresses: 1 });
  expect((await key("POST", "/v1/domains", { name: "one.test" })).status).toBe(201);
  const refused = await key("POST", "/v1/domains", { name: "two.test" });
  expect([refused.status, text(refused.json["detail"])]).toEqual([
    409,
    expect.stringContaining("The account default has 1 domains, and may have at most 1"),
  ]);
  expect((await key("POST", "/v1/ip_pools", { name: "p" })).status).toBe(201);
  expect((await key("POST", "/v1/ip_pools", { name: "q" })).status).toBe(409);
  expect((await operator("POST", "/v1/ip_pools", { name: "q" })).status).toBe(201);
  expect((await key("POST", "/v1/ip_pools/p/ips", { ip_address: "192.0.2.1" })).status).toBe(201);
  expect((await key("POST", "/v1/ip_pools/p/ips", { ip_address: "192.0.2.2" })).status).toBe(409);
});

test("a limit that there is none of, or that is no number, is refused", async () => {
  for (const limits of [{ webhook: 5 }, { webhooks: -1 }, { webhooks: 1.5 }, { webhooks: "5" }])
    expect((await operator("PATCH", "/v1/accounts/default", { limits })).status).toBe(422);
});
