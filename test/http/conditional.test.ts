// Last-Modified and If-Modified-Since on every GET of the public API and the admin socket, over a real store: nothing after a quiet second, all of
// it after any change, and no token spent on what had not changed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RouteDeps } from "../../src/http/deps.ts";
import { allRoutes } from "../../src/http/routes.ts";
import type { Resource } from "../../src/model/last-change.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { NewSuppression } from "../../src/model/suppression.ts";
import type { Endpoint } from "../../src/model/webhook.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import type { ShapingRules } from "../../src/queue/shaping-rules.ts";
import type { Store } from "../../src/store/store.ts";
import {
  accept,
  mint,
  newEndpoint,
  newEvent,
  newMessage,
  newSuppression,
  owner,
  settlementOf,
  took,
} from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { getFrom, reading, second, stampOf, type Get } from "./conditional-reads.ts";
import { fake } from "./harness.ts";
import { newDomain, startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let account: number;
let hook: Endpoint;
/** Delivered once to each of two. */
let sent: Job[];
let messageId: string;
let keyId: string;

const getRoutes = allRoutes(fake<RouteDeps>("deps", {})).filter(({ method }) => method === "GET");
/** A path with other filters on the admin socket than in the public API stands here once. */
const routes = [...new Map(getRoutes.toReversed().map((route) => [route.path, route])).values()];

/** A request of every GET route; a new route needs its line here. */
const asks = (): Record<string, string> => ({
  "/v1/messages": "/v1/messages?limit=10",
  "/v1/messages/{id}": `/v1/messages/${messageId}`,
  "/v1/messages/{id}/attempts": `/v1/messages/${messageId}/attempts`,
  "/v1/messages/{id}/waits": `/v1/messages/${messageId}/waits`,
  "/v1/messages/{id}/content": `/v1/messages/${messageId}/content`,
  "/v1/events": "/v1/events",
  "/v1/webhooks": "/v1/webhooks",
  "/v1/webhooks/{id}": `/v1/webhooks/${hook.id}`,
  "/v1/webhooks/{id}/deliveries": `/v1/webhooks/${hook.id}/deliveries`,
  "/v1/domains": "/v1/domains",
  "/v1/domains/{name}": "/v1/domains/shop.example",
  "/v1/ip_pools": "/v1/ip_pools",
  "/v1/ip_pools/{name}": "/v1/ip_pools/default",
  "/v1/ip-pools": "/v1/ip-pools",
  "/v1/ip-pools/{name}": "/v1/ip-pools/default",
  "/v1/ips": "/v1/ips",
  "/v1/ip_assignments": "/v1/ip_assignments",
  "/v1/suppressions": "/v1/suppressions",
  "/v1/suppression_count": "/v1/suppression_count",
  "/v1/suppressions/{email}": "/v1/suppressions/listed@a.test",
  "/v1/stats": "/v1/stats",
  "/v1/stats/bounces": "/v1/stats/bounces",
  "/v1/stats/domains": "/v1/stats/domains",
  "/v1/stats/ip_pools": "/v1/stats/ip_pools",
  "/v1/stats/ips": "/v1/stats/ips",
  "/v1/stats/providers": "/v1/stats/providers",
  "/v1/stats/recipient_domains": "/v1/stats/recipient_domains",
  "/v1/stats/summary": "/v1/stats/summary",
  "/v1/stats/tags": "/v1/stats/tags",
  "/v1/stats/timeseries": "/v1/stats/timeseries",
  "/v1/stats/webhooks": "/v1/stats/webhooks",
  "/errors/{code}": "/errors/conflict",
  "/openapi.json": "/openapi.json",
  "/docs": "/docs",
  "/docs/redoc.js": "/docs/redoc.js",
  "/healthz": "/healthz",
  "/readyz": "/readyz",
  "/v1/status": "/v1/status",
  "/metrics": "/metrics",
  "/v1/accounts": "/v1/accounts",
  "/v1/audit": "/v1/audit",
  "/v1/blacklists": "/v1/blacklists",
  "/v1/blacklists/zones": "/v1/blacklists/zones",
  "/v1/accounts/{account}": "/v1/accounts/default",
  "/v1/backups": "/v1/backups",
  "/v1/certificates": "/v1/certificates",
  "/v1/database/check": "/v1/database/check",
  "/v1/retention": "/v1/retention",
  "/v1/retention/expired": "/v1/retention/expired",
  "/v1/maintenance": "/v1/maintenance",
  "/v1/queue": "/v1/queue",
  "/v1/queue/count": "/v1/queue/count",
  "/v1/queue/pauses": "/v1/queue/pauses",
  "/v1/activity": "/v1/activity",
  "/v1/lockouts": "/v1/lockouts",
  "/v1/logs": "/v1/logs",
  "/v1/shaping": "/v1/shaping",
  "/v1/shaping/{name}": "/v1/shaping/google",
  "/v1/keys": "/v1/keys",
  "/v1/keys/{id}": `/v1/keys/${keyId}`,
  "/v1/smtp_credentials": "/v1/smtp_credentials",
  "/v1/inbox": "/v1/inbox",
  "/v1/events/tail": "/v1/events/tail",
});

beforeAll(async () => {
  const limits = createShaping(null).explain("google");
  const google = { name: "google", limits, slowed: 0 };
  const shapingRules: Partial<ShapingRules> = {
    list: () => [google],
    show: async () => ({ ...google, mxGroup: null, now: [] }),
  };
  http = await startStored(() => ({ config: { rates: {} }, shapingRules }));
  ({ store, clock } = http);
  account = http.account.key;
  keyId = (await http.key("send")).key.id;
  hook = await store.createEndpoint(newEndpoint(account, clock.now()));
  const message = newMessage({
    accountKey: account,
    at: clock.now(),
    to: ["ann@a.test", "bob@b.test"],
    lease: true,
  });
  messageId = message.message.id;
  sent = await accept(store, message);
  for (const job of sent) await store.settle(settlementOf(job, clock.now(), { catchInInbox: true }));
  await store.addSuppressions([newSuppression(account, "listed@a.test")], clock.now());
  await store.createDomain(newDomain(account, "shop.example", clock.now()));
});
afterAll(() => http.stop());
beforeEach(() => clock.advance(5000));

const routeOf = (path: string) => {
  const found = routes.find((route) => route.path === path);
  if (!found || found.method !== "GET") throw new Error(`there is no GET ${path}`);
  return found;
};
const ask = getFrom(() => http);
const get: Get = (path, since, more = {}) =>
  ask(asks()[path] ?? path, since, {
    ...more,
    admin: more.admin === true || routes.find((route) => route.path === path)?.listeners === "admin",
  });
const read = reading(get);
const conditional = (of?: Resource): string[] =>
  routes
    .filter((route) => route.method === "GET" && route.lastModifiedFrom !== "always")
    .filter((route) => of === undefined || (route.method === "GET" && route.lastModifiedFrom.includes(of)))
    .map(({ path }) => path);

test("the table above has every GET route", () => {
  expect([...new Set(routes.map(({ path }) => path))].toSorted()).toEqual(Object.keys(asks()).toSorted());
});

describe.each(routes.filter(({ path }) => path !== "/v1/events/tail").map(({ path }) => path))(
  "GET %s",
  (path) => {
    test("says when it last changed, and never a time to come", async () => {
      const stamp = await read(path);
      expect(stamp).toBe(second(Date.parse(stamp)));
      expect(Date.parse(stamp)).toBeLessThanOrEqual(clock.now());
    });

    test("is 304 after a quiet second, without a body, and costs no token", async () => {
      await read(path); // a key's first use in a minute is a change itself
      await clock.advance(3000);
      const first = await get(path);
      const again = await get(path, stampOf(first));
      if (routeOf(path).lastModifiedFrom === "always") return expect(again.status).toBe(200);
      expect(again.status).toBe(304);
      expect(again.text).toBe("");
      expect(again.headers["content-type"]).toBeUndefined();
      expect(again.headers["content-length"]).toBeUndefined();
      expect(again.headers["last-modified"]).toBe(first.headers["last-modified"]);
      expect(again.headers["x-request-id"]).toMatch(/^req_/);
      expect(again.headers["x-api-version-used"]).toBe("2026-11");
      for (const name of ["limit", "remaining", "reset", "bucket"])
        expect(again.headers[`x-ratelimit-${name}`]).toBe(first.headers[`x-ratelimit-${name}`]);
      const head = await get(path, stampOf(first), { method: "HEAD" });
      expect([head.status, head.headers["x-ratelimit-remaining"]]).toEqual([
        304,
        first.headers["x-ratelimit-remaining"],
      ]);
    });
  },
);

test("statistics of now are new with each quarter of an hour, and after a refusal for suppression is counted", async () => {
  const stamp = await read("/v1/stats");
  await clock.advance(3000);
  expect((await get("/v1/stats", stamp)).status).toBe(304);
  const of = { accountKey: account, test: false, domain: null, pool: null, tagsJson: "[]" };
  store.countRejection({ ...of, recipientDomains: ["c.test"], at: clock.now() });
  await store.statsTotals(account, { from: 0, to: clock.now(), test: false }); // writes what was gathered
  await clock.advance(3000);
  const counted = await get("/v1/stats", stamp);
  expect([counted.status, counted.json["totals"]]).toMatchObject([200, { suppressed_rejections: 1 }]);
  await clock.advance(15 * 60_000);
  expect((await get("/v1/stats", stampOf(counted))).status).toBe(200);
});

/** What changes, what it changes, and what of that is not shown by a route. */
const changes: [name: string, of: Resource[], change: () => Promise<unknown>, not?: string[]][] = [
  [
    "a message is accepted",
    ["messages"],
    () => accept(store, newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now() })),
    ["/v1/messages/{id}", "/v1/messages/{id}/content"],
  ],
  [
    "a recipient's outcome is settled",
    ["messages", "events", "suppressions", "inbox"],
    async () => {
      const [job] = await accept(
        store,
        newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now(), lease: true }),
      );
      if (!job) throw new Error("no job");
      const suppression = newSuppression(account, "settled@a.test");
      await store.settle(settlementOf(job, clock.now(), { suppression, catchInInbox: true }));
    },
    ["/v1/messages/{id}", "/v1/messages/{id}/content", "/v1/suppressions/{email}"],
  ],
  [
    "a report comes back",
    ["messages", "events", "suppressions"],
    () => report("complained", newSuppression(account, "ann@a.test")),
    ["/v1/messages/{id}/content", "/v1/suppressions/{email}"],
  ],
  [
    "due mail is claimed",
    ["messages"],
    async () => {
      await accept(
        store,
        newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now(), queueName: "claimed.test" }),
      );
      await clock.advance(2000);
      await read("/v1/messages", true);
      await clock.advance(2000);
      const claim = {
        owner,
        queueName: "claimed.test",
        limit: 5,
        now: clock.now(),
      };
      expect((await store.claimDue(claim)).jobs).toHaveLength(1);
    },
    ["/v1/messages/{id}", "/v1/messages/{id}/content"],
  ],
  [
    "an event is recorded",
    ["events"],
    () => store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() })),
  ],
  [
    "a webhook is created",
    ["webhooks"],
    () => store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 256 })),
    ["/v1/webhooks/{id}"],
  ],
  [
    "a webhook is changed",
    ["webhooks"],
    () => store.updateEndpoint(account, hook.id, { description: "x", updatedAt: clock.now() }),
  ],
  [
    "its secret is rotated",
    ["webhooks"],
    () =>
      store.rotateSecret(account, hook.id, { secret: "t".repeat(64), previousUntil: null, at: clock.now() }),
  ],
  [
    "its backlog is dropped",
    ["webhooks", "events"],
    () => store.updateEndpoint(account, hook.id, { updatedAt: clock.now() }, { discardBacklog: true }),
  ],
  [
    "an event is sent to it again",
    ["events"],
    () =>
      store.replayDeliveries(
        account,
        hook.id,
        { kind: "range", since: null, until: null, deadLettered: false, types: ["message.delivered"] },
        clock.now(),
      ),
  ],
  ["a delivery is claimed", ["events"], async () => expect((await claimOne()).attempt).toBe(1)],
  [
    "a delivery is settled",
    ["events", "webhooks"],
    async () => {
      const delivery = await claimOne();
      await clock.advance(2000);
      await Promise.all(["/v1/events", "/v1/webhooks", "/v1/webhooks/{id}"].map((path) => read(path, true)));
      await clock.advance(2000);
      await store.settleDeliveries([
        { ...took, ...delivery, at: clock.now(), status: 200, result: { kind: "delivered" } },
      ]);
    },
  ],
  [
    "a webhook is deleted",
    ["webhooks", "events"],
    async () => {
      const other = await store.createEndpoint(newEndpoint(account, clock.now()));
      await clock.advance(2000);
      await Promise.all(["/v1/events", "/v1/webhooks"].map((path) => read(path, true)));
      await clock.advance(2000);
      await store.deleteEndpoint(account, other.id);
    },
    ["/v1/webhooks/{id}"],
  ],
  ["an address is suppressed", ["suppressions"], () => add("other@a.test"), ["/v1/suppressions/{email}"]],
  ["its entry gets a stronger reason", ["suppressions"], () => add("listed@a.test", { reason: "complaint" })],
  [
    "an entry is removed",
    ["suppressions"],
    () => store.removeSuppression(account, "other@a.test"),
    ["/v1/suppressions/{email}"],
  ],
  ["a key is made", ["keys"], () => http.key("send")],
  ["a key is used", ["keys"], () => store.noteUse({ apiKeys: [1], smtpCredentials: [], at: clock.now() })],
  [
    "an SMTP login is made",
    ["smtp_credentials"],
    () => http.access.createCredential(http.account, { name: "x", test: false }),
  ],
  ["a domain is looked at", ["domains"], checkDomain],
  [
    "a pool gets an address",
    ["ip_pools"],
    () =>
      store.addAddress(
        account,
        "default",
        { address: "192.0.2.1", hostname: null, weight: 1, warmup: null, bindable: true },
        clock.now(),
      ),
  ],
  [
    "an address is seen to be missing",
    ["ip_pools"],
    () => store.saveLooks([{ address: "192.0.2.1", bindable: false, ptr: null, ptrOk: null }], clock.now()),
  ],
  ["the inbox is cleared", ["inbox"], () => store.clearInbox(account)],
  [
    "a recipient is forgotten",
    ["messages", "events", "inbox"],
    () => store.forgetRecipient(account, "bob@b.test", 0),
    ["/v1/messages/{id}/content"], // which is 404 from then on
  ],
];

test.each(changes)(
  "after %s, what shows it is read again, and nothing else is",
  async (_name, of, change, not = []) => {
    await changeOthers();
    // Statistics are new with each quarter of an hour: none begins while the test runs.
    const leftMs = 900_000 - (clock.now() % 900_000);
    await clock.advance(leftMs < 60_000 ? leftMs : 3000);
    // Over the socket, where no key is used.
    const paths = conditional().filter((path) => routeOf(path).listeners !== "public");
    const stamps = new Map<string, string>();
    for (const path of paths) stamps.set(path, await read(path, true));
    await clock.advance(3000);
    await change();
    await clock.advance(3000);
    const changed: string[] = [];
    for (const [path, stamp] of stamps)
      if ((await get(path, stamp, { admin: true })).status === 200) changed.push(path);
    const shown = new Set(of.flatMap((resource) => conditional(resource)));
    expect(changed).toEqual([...stamps.keys()].filter((path) => shown.has(path) && !not.includes(path)));
  },
);

test("what retention removes is gone from a conditional list too", async () => {
  const messages = await read("/v1/messages");
  const events = await read("/v1/events");
  await clock.advance(3000);
  const at = clock.now() - 1000;
  await store.purge({
    now: clock.now(),
    contentBefore: at,
    messagesBefore: at,
    eventsBefore: 0,
    auditBefore: 0,
    limit: 1000,
  });
  expect((await get("/v1/messages", messages)).status).toBe(200);
  expect((await get("/v1/events", events)).status).toBe(304);
  await store.updateEndpoint(account, hook.id, { updatedAt: clock.now() }, { discardBacklog: true });
  await clock.advance(3000);
  const rest = await read("/v1/events");
  await clock.advance(3000);
  const old = { now: clock.now(), contentBefore: 0, messagesBefore: 0, auditBefore: 0, limit: 1000 };
  expect(await store.purge({ ...old, eventsBefore: 0 })).toMatchObject({ events: 0 });
  expect((await get("/v1/events", rest)).status).toBe(304);
  expect((await store.purge({ ...old, eventsBefore: at })).events).toBeGreaterThan(0);
  expect((await get("/v1/events", rest)).status).toBe(200);
});

async function add(email: string, wishes: Partial<NewSuppression> = {}): Promise<void> {
  await store.addSuppressions([newSuppression(account, email, wishes)], clock.now());
}

/** From here on a single thing is dated by itself: its list has changed since. */
async function changeOthers(): Promise<void> {
  await add(`${mint("req", 1)}@a.test`);
  await accept(store, newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now() }));
  await store.createEndpoint(newEndpoint(account, clock.now(), { eventMask: 256 }));
}

async function claimOne() {
  const now = clock.now();
  const { deliveries } = await store.claimDeliveries({
    owner,
    accountKey: hook.accountKey,
    endpointKey: hook.key,
    limit: 1,
    now,
  });
  const [delivery] = deliveries;
  if (!delivery) throw new Error("nothing is due");
  return delivery;
}

async function report(kind: "complained", suppression: NewSuppression): Promise<void> {
  const [job] = sent;
  if (!job) throw new Error("no job");
  const at = clock.now();
  const event = newEvent({ accountKey: account, messageKey: job.message.key, receivedAt: at });
  const reply = { smtpCode: null, smtpStatus: null, smtpResponse: null };
  const keys = { recipientKey: job.key, messageKey: job.message.key };
  expect(await store.settleReports([{ kind, ...keys, at, ...reply, event, suppression }])).toEqual([
    "recorded",
  ]);
}

async function checkDomain(): Promise<void> {
  const domain = await store.domainByName(account, "shop.example");
  if (domain) await store.saveDomain({ ...domain, checkedAt: clock.now(), updatedAt: clock.now() });
}
