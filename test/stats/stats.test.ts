// GET /v1/stats/* over real mail: what is counted, where, and what cannot be asked.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { list, text, type Json } from "../http/harness.ts";
import { newEndpoint, newSuppression, owner } from "../store/fixtures.ts";
import { outcomes, startTraffic, type Traffic } from "./rig.ts";

const minute = 60_000;
const hour = 60 * minute;
let traffic: Traffic;
beforeEach(async () => void (traffic = await startTraffic(Date.parse("2026-11-27T09:00:00Z"))));
afterEach(() => traffic.stop());

const now = (): number => traffic.clock.now();

/** What is not 0. */
function counted(totals: Json | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(totals ?? {}).filter(([, n]) => (n as unknown) !== 0));
}

async function rows(path: string): Promise<Record<string, Record<string, unknown>>> {
  const { json, text: said, status } = await traffic.stats(path);
  if (status !== 200) throw new Error(said);
  return Object.fromEntries(list(json["data"]).map((row) => [row["key"], counted(row["totals"])]));
}

test("with nothing counted every counter is 0, every rate null, and the last thirty days are told", async () => {
  const { status, json } = await traffic.stats("");
  expect(status).toBe(200);
  expect(json).toEqual({
    from: "2026-10-29T00:00:00.000Z",
    to: "2026-11-28T00:00:00.000Z",
    timezone: "UTC",
    totals: {
      accepted: 0,
      delivered: 0,
      deferred: 0,
      bounced: 0,
      bounced_hard: 0,
      bounced_soft: 0,
      complained: 0,
      opened: 0,
      unique_opened: 0,
      clicked: 0,
      unique_clicked: 0,
      unsubscribed: 0,
      suppressed_rejections: 0,
    },
    rates: {
      delivery_rate: null,
      bounce_rate: null,
      complaint_rate: null,
      open_rate: null,
      click_rate: null,
    },
    formulas: {
      delivery_rate: "delivered / (delivered + bounced)",
      bounce_rate: "bounced / (delivered + bounced)",
      complaint_rate: "complained / delivered",
      open_rate: expect.stringContaining("unique_opened / delivered"),
      click_rate: expect.stringContaining("unique_clicked / delivered"),
    },
  });
  expect((await traffic.stats("/summary")).json).toEqual(json);
});

test("counts are per recipient: accepted, deferred at each attempt, delivered, and the rates of it", async () => {
  const jobs = await traffic.send({ to: ["a@a.test", "b@a.test"], cc: "c@b.test" });
  expect(counted(await traffic.totals())).toEqual({ accepted: 3 });
  const [first, second, third] = jobs;
  if (!first || !second || !third) throw new Error("three recipients make three jobs");
  await traffic.end(first, outcomes.deferred(now()));
  await traffic.end(second, outcomes.delivered(now()));
  await traffic.end(third, outcomes.bounced(now()));
  const { json } = await traffic.stats("");
  expect(counted(json["totals"])).toEqual({
    accepted: 3,
    deferred: 1,
    delivered: 1,
    bounced: 1,
    bounced_hard: 1,
  });
  expect(json["rates"]).toMatchObject({
    delivery_rate: 0.5,
    bounce_rate: 0.5,
    complaint_rate: 0,
    open_rate: 0,
  });
});

test("a bounce is hard by its reply, soft where a temporary failure ended, and neither if it is unknown", async () => {
  const jobs = await traffic.send({ to: ["a@a.test", "b@a.test", "c@a.test", "d@a.test"] });
  const [hard, soft, unknown, late] = jobs;
  if (!hard || !soft || !unknown || !late) throw new Error("four");
  await traffic.end(hard, outcomes.bounced(now()));
  const full = {
    reply: { code: 452, status: "4.2.2", text: "full" },
    classification: "mailbox_full",
  } as const;
  await traffic.end(soft, outcomes.bounced(now(), full));
  for (const job of [unknown, late]) await traffic.end(job, outcomes.delivered(now()));
  await traffic.report(unknown, { text: "something went wrong" });
  await traffic.report(unknown, { text: "told twice" });
  await traffic.report(late, { status: "4.4.7", text: "expired" });
  expect(counted(await traffic.totals())).toEqual({
    accepted: 4,
    delivered: 2,
    bounced: 4,
    bounced_hard: 1,
    bounced_soft: 2,
  });
});

test("a report counts where its delivery did: its address, its provider", async () => {
  const [job] = await traffic.send({ to: "a@a.test" });
  if (!job) throw new Error("no job");
  await traffic.end(job, outcomes.delivered(now()), "google");
  await traffic.report(job, "complaint");
  await traffic.report(job, "complaint");
  const found = { delivered: 1, complained: 1 };
  expect(counted(await traffic.totals())).toEqual({ accepted: 1, ...found });
  expect(await rows("/providers")).toEqual({ google: found });
  expect(await rows("/ips")).toEqual({ "192.0.2.1": found });
});

describe("refusals of suppressed recipients", () => {
  beforeEach(async () => {
    await traffic.store.addSuppressions([newSuppression(traffic.accountKey, "Gone@A.test")], now());
  });

  test("are counted by REST and SMTP, once a recipient, together within a second", async () => {
    const refused = await traffic.post({ to: ["gone@a.test", "fine@b.test"], tags: ["x"] });
    expect([refused.status, refused.json["code"]]).toEqual([422, "recipient_suppressed"]);
    expect(await traffic.rcpt("gone@a.test")).toBe("recipient_suppressed");
    expect(await traffic.rcpt("fine@a.test")).toBe(null);
    expect(counted(await traffic.totals())).toEqual({ suppressed_rejections: 2 });
    expect(counted(await traffic.totals("tag=x"))).toEqual({ suppressed_rejections: 1 });
    expect(await rows("/recipient_domains")).toEqual({ "a.test": { suppressed_rejections: 2 } });
  });

  test("are counted in a batch, and not where a request is only validated", async () => {
    const message = { from: "info@shop.example", subject: "x", text: "y", to: "gone@a.test" };
    await traffic.post({}, { path: "/v1/messages/validate", body: message });
    expect(counted(await traffic.totals())).toEqual({});
    const batch = { messages: [message, { ...message, to: "fine@a.test" }, message] };
    await traffic.post({}, { path: "/v1/messages/batch", body: batch });
    expect(counted(await traffic.totals())).toEqual({ accepted: 1, suppressed_rejections: 2 });
  });

  test("that no one reads are written by themselves after a second", async () => {
    for (let i = 0; i < 100; i++) await traffic.rcpt("gone@a.test");
    let commits = 0;
    traffic.store.onCommit(() => void commits++);
    await traffic.clock.advance(1000);
    while (commits === 0) await new Promise(setImmediate);
    expect(commits).toBe(1);
    expect(counted(await traffic.totals())).toEqual({ suppressed_rejections: 100 });
  });
});

describe("lists", () => {
  async function mail(body: object, group: string): Promise<void> {
    for (const job of await traffic.send(body)) await traffic.end(job, outcomes.delivered(now()), group);
  }
  beforeEach(async () => {
    await mail({ to: ["a@a.test", "b@a.test", "c@b.test"], tags: ["news", "weekly"] }, "google");
    await mail({ from: "info@other.example", to: "a@b.test", tags: ["news"] }, "yahoo");
  });

  const one = { accepted: 1, delivered: 1 };
  const three = { accepted: 3, delivered: 3 };

  test("are by tag, domain, recipient domain, provider, address and pool, biggest first", async () => {
    expect(await rows("/tags")).toEqual({ news: { accepted: 4, delivered: 4 }, weekly: three });
    expect(await rows("/domains")).toEqual({ "shop.example": three, "other.example": one });
    expect(await rows("/recipient_domains")).toEqual({
      "a.test": { accepted: 2, delivered: 2 },
      "b.test": { accepted: 2, delivered: 2 },
    });
    expect(await rows("/providers")).toEqual({ google: { delivered: 3 }, yahoo: { delivered: 1 } });
    expect(await rows("/ips")).toEqual({ "192.0.2.1": { delivered: 4 } });
    expect(await rows("/ip_pools")).toEqual({ default: { accepted: 4, delivered: 4 } });
    const { json } = await traffic.stats("/providers");
    expect(list(json["data"]).map(({ key }) => key)).toEqual(["google", "yahoo"]);
    expect(counted(json["totals"])).toEqual({ accepted: 4, delivered: 4 });
    expect(list(json["data"])[0]?.["rates"]).toMatchObject({ delivery_rate: 1, bounce_rate: 0 });
  });

  test("are within one domain or one pool too", async () => {
    expect(await rows("/tags?domain=other.example")).toEqual({ news: one });
    expect(await rows("/recipient_domains?domain=OTHER.example")).toEqual({ "b.test": one });
    expect(await rows("/providers?ip_pool=default")).toEqual({
      google: { delivered: 3 },
      yahoo: { delivered: 1 },
    });
    expect(await rows("/domains?domain=other.example")).toEqual({ "other.example": one });
    expect(await rows("/ip_pools?domain=other.example")).toEqual({ default: one });
    expect(await rows("/tags?ip_pool=none")).toEqual({});
    expect(counted((await traffic.stats("/tags?domain=other.example")).json["totals"])).toEqual(one);
  });

  test("sums are of one tag, one domain or one pool", async () => {
    expect(counted(await traffic.totals("tag=weekly"))).toEqual(three);
    expect(counted(await traffic.totals("domain=other.example"))).toEqual(one);
    expect(counted(await traffic.totals("ip_pool=default"))).toEqual({ accepted: 4, delivered: 4 });
    expect(counted(await traffic.totals("tag=none"))).toEqual({});
  });

  test("go page by page, each row once", async () => {
    const seen: unknown[] = [];
    let cursor = "";
    for (let pages = 0; pages < 5; pages++) {
      const { json } = await traffic.stats(`/recipient_domains?limit=1${cursor}`);
      seen.push(...list(json["data"]).map(({ key }) => key));
      if ((json["has_more"] as unknown) === false) break;
      cursor = `&cursor=${text(json["next_cursor"])}`;
    }
    expect(seen).toEqual(["a.test", "b.test"]);
    const other = await traffic.stats("/tags?cursor=abc");
    expect([other.status, other.json["field"]]).toEqual([400, "cursor"]);
  });
});

test("bounces are by cause, with its category", async () => {
  const [a, b, c] = await traffic.send({ to: ["a@a.test", "b@a.test", "c@a.test"] });
  if (!a || !b || !c) throw new Error("three");
  for (const job of [a, b]) await traffic.end(job, outcomes.bounced(now()));
  await traffic.end(c, outcomes.bounced(now(), { classification: "spam_content" }));
  const { json } = await traffic.stats("/bounces");
  expect(json["data"]).toEqual([
    {
      key: "invalid_recipient",
      bounce_category: "recipient",
      totals: { bounced: 2, bounced_hard: 2, bounced_soft: 0 },
      rates: { bounce_rate: 2 / 3 },
    },
    {
      key: "spam_content",
      bounce_category: "content",
      totals: { bounced: 1, bounced_hard: 1, bounced_soft: 0 },
      rates: { bounce_rate: 1 / 3 },
    },
  ]);
  expect(json).toMatchObject({ totals: { bounced: 3 }, rates: { bounce_rate: 1 }, has_more: false });
});

test("webhooks are by endpoint: attempts, and what came of them", async () => {
  const endpoint = await traffic.store.createEndpoint(newEndpoint(traffic.accountKey, now()));
  for (const job of await traffic.send({ to: ["a@a.test", "b@a.test"] }))
    await traffic.end(job, outcomes.delivered(now()));
  const claim = {
    owner,
    accountKey: endpoint.accountKey,
    endpointKey: endpoint.key,
    limit: 10,
    now: now(),
  };
  const { deliveries } = await traffic.store.claimDeliveries(claim);
  const results = [{ kind: "delivered" }, { kind: "dead_lettered" }] as const;
  await traffic.store.settleDeliveries(
    deliveries.map((delivery, index) => ({
      ...delivery,
      at: now(),
      status: 200,
      durationMs: 1,
      error: null,
      responseBody: null,
      result: results[index] ?? { kind: "delivered" },
    })),
  );
  const { json } = await traffic.stats("/webhooks");
  const totals = { attempts: 2, delivered: 1, failed: 1, dead_lettered: 1 };
  expect(json["data"]).toEqual([{ key: endpoint.id, totals, rates: { success_rate: 0.5 } }]);
  expect(json["totals"]).toEqual(totals);
  // what was posted counts among the mail nowhere
  expect(counted(await traffic.totals())).toEqual({ accepted: 2, delivered: 2 });
});

test("test traffic is apart", async () => {
  const { value } = await traffic.http.key("send", { test: true });
  const [job] = await traffic.send({ to: "a@a.test", tags: ["t"] }, { key: value });
  if (job) await traffic.end(job, outcomes.delivered(now(), null), "sandbox");
  expect(counted(await traffic.totals())).toEqual({});
  expect(counted(await traffic.totals("test=true"))).toEqual({ accepted: 1, delivered: 1 });
  expect(await rows("/tags")).toEqual({});
  expect(await rows("/tags?test=true")).toEqual({ t: { accepted: 1, delivered: 1 } });
  expect(await rows("/ips?test=true")).toEqual({});
});

test("what nothing is counted under is refused, with the field", async () => {
  const refused: [string, string][] = [
    ["?tag=a&domain=b.test", "domain"],
    ["?domain=b.test&ip_pool=c", "ip_pool"],
    ["/timeseries?tag=a&ip_pool=c", "ip_pool"],
    ["/tags?tag=a", "tag"],
    ["/providers?domain=b.test&ip_pool=c", "ip_pool"],
    ["/bounces?tag=a", "tag"],
    ["/webhooks?domain=b.test", "domain"],
    ["?from=yesterday", "from"],
    ["?from=2026-02-30", "from"],
    ["?to=1999-01-01", "to"],
    ["?from=2026-11-20&to=2026-11-20", "to"],
    ["?from=2026-12-20", "from"],
    ["?timezone=Mars/Olympus", "timezone"],
    ["?timezone=%2B05:30", "timezone"],
    ["/timeseries?granularity=minute", "granularity"],
    ["/timeseries?granularity=hour&from=2026-09-01&to=2026-11-01", "granularity"],
    ["/timeseries?granularity=hour&from=2026-08-01&to=2026-08-02", "granularity"],
    ["/timeseries?granularity=day&from=2020-01-01", "granularity"],
    ["?test=maybe", "test"],
    ["/tags?limit=0", "limit"],
  ];
  for (const [path, field] of refused) {
    const { status, json } = await traffic.stats(path);
    expect([path, status, json["code"], json["field"]]).toEqual([path, 400, "invalid_request", field]);
  }
});

test("a key that may not report is told so, and readings draw on their own bucket", async () => {
  const { value } = await traffic.http.key("send");
  expect((await traffic.stats("", { key: value })).status).toBe(403);
  const answer = await traffic.stats("/tags");
  expect(answer.headers["x-ratelimit-bucket"]).toBe("stats-read");
  expect((await traffic.stats("/nothing")).status).toBe(404);
  expect((await traffic.stats("", { admin: true, key: null })).status).toBe(200);
});

test("accounts see their own", async () => {
  const [job] = await traffic.send({ to: "a@a.test" });
  if (job) await traffic.end(job, outcomes.delivered(now()));
  const range = { from: now() - hour, to: now() + hour, test: false };
  expect((await traffic.store.statsTotals(traffic.accountKey, range)).delivered).toBe(1);
  expect((await traffic.store.statsTotals(traffic.accountKey + 1, range)).delivered).toBe(0);
});
