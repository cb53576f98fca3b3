// 502 and 504: what a client gets where somebody whom the request depends on fails or does not answer in time.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createResolver } from "../../src/dns/resolve.ts";
import { createDomains } from "../../src/domains/manage.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import type { Store } from "../../src/store/store.ts";
import type { Webhooks } from "../../src/webhooks/webhooks.ts";
import { newDirectory, newEndpoint, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startDnsServer, type DnsServer, type Failure } from "../support/dns-server.ts";
import { startHttp, text, type Answer, type Harness } from "./harness.ts";

const clock = new ManualClock();
let store: Store;
let dns: DnsServer;
let http: Harness;
let playTest: Webhooks["test"];
let endpointId: string;

beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  dns = await startDnsServer();
  const resolver = createResolver({
    servers: [dns.server],
    timeoutMs: 6_000,
    tries: 2,
    clock,
    log: silentLog,
  });
  const domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: { hostname: "mail.host.test", sources: [], publicHost: "mail.host.test" },
    clock,
    mint: createIdMint(),
  });
  http = await startHttp({
    opened: { store, clock },
    domains,
    webhooks: { test: (endpoint, type) => playTest(endpoint, type) },
  });
  await domains.add(http.account.key, "a.test");
  ({ id: endpointId } = await store.createEndpoint(newEndpoint(http.account.key, clock.now())));
});
afterAll(async () => {
  await http.stop();
  await dns.stop();
});
afterEach(() => failAll(null));

async function failAll(how: Failure | null): Promise<void> {
  const domain = await store.domainByName(http.account.key, "a.test");
  for (const { name } of domain?.records ?? []) dns.fail(name, how);
}
const verify = (headers = {}): Promise<Answer> =>
  http.ask({ method: "POST", path: "/v1/domains/a.test/verify", headers });

/** Lets time pass until there is an answer; how long that took. */
async function waitFor(asked: Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> {
  const began = clock.monotonic();
  const over = asked.then(() => true);
  while (!(await Promise.race([over, clock.advance(500).then(() => false)])));
  return { answer: await asked, tookMs: clock.monotonic() - began };
}

test("a resolver that can tell of no record is 502 upstream_error, which names it", async () => {
  await failAll("servfail");
  const { status, json, headers } = await verify();
  expect([status, headers["content-type"]]).toEqual([502, "application/problem+json"]);
  expect(json).toMatchObject({ code: "upstream_error", title: "Upstream error" });
  expect(text(json["detail"])).toMatch(/DNS lookup of .*a\.test failed/);
  expect(headers["retry-after"]).toBeUndefined();
});

test("one that tells of some is 200, and says of which it could not", async () => {
  const domain = await store.domainByName(http.account.key, "a.test");
  dns.fail(domain?.records.find(({ required }) => required)?.name ?? "", "servfail");
  const { status, json } = await verify();
  expect(status).toBe(200);
  expect(JSON.stringify(json["records"])).toContain('"unknown"');
});

test("one that does not answer is 504 upstream_timeout after ten seconds", async () => {
  await failAll("timeout");
  const { answer, tookMs } = await waitFor(verify());
  expect([answer.status, answer.json["code"]]).toEqual([504, "upstream_timeout"]);
  expect(tookMs).toBeGreaterThanOrEqual(10_000);
  expect(tookMs).toBeLessThan(12_000);
  // The check goes on; who asks meanwhile gets its result.
  for (let passed = 0; passed < 60_000; passed += 500) await clock.advance(500);
});

test("a failure is kept under no key: the same request again is done again", async () => {
  const key = { "idempotency-key": "verify-1" };
  await failAll("servfail");
  expect((await verify(key)).status).toBe(502);
  await failAll(null);
  const again = await verify(key);
  expect([again.status, again.headers["idempotency-replayed"]]).toEqual([200, undefined]);
});

const testWebhook = (): Promise<Answer> =>
  http.ask({ method: "POST", path: `/v1/webhooks/${endpointId}/test` });

test("a webhook's receiver that fails is told with 200; a dispatcher that fails is 502, one that hangs 504", async () => {
  const failure = {
    delivered: false,
    status: 500,
    durationMs: 3,
    failure: null,
    eventId: createIdMint()("evt", 1),
  };
  playTest = () => Promise.resolve(failure);
  expect(await testWebhook()).toMatchObject({ status: 200, json: { delivered: false, status: 500 } });
  playTest = () => Promise.reject(new Error("secret detail"));
  const broken = await testWebhook();
  expect([broken.status, broken.json["code"]]).toEqual([502, "upstream_error"]);
  expect(broken.text).not.toContain("secret");
  playTest = () => new Promise(() => undefined);
  const { answer, tookMs } = await waitFor(testWebhook());
  expect([answer.status, answer.json["code"]]).toEqual([504, "upstream_timeout"]);
  expect(tookMs).toBeLessThan(13_000);
});
