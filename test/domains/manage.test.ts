// Sender domains from adding to verification, against a real resolver and a DNS server on loopback.
import { createPublicKey } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { DomainStatus, SenderDomain } from "../../src/model/domain.ts";
import { idleClock } from "../support/idle-clock.ts";
import { createResolver } from "../../src/dns/resolve.ts";
import type { CachingResolver } from "../../src/dns/resolve.ts";
import type { Domains } from "../../src/domains/domains.ts";
import { createDomains } from "../../src/domains/manage.ts";
import type { DomainsDeps } from "../../src/domains/manage.ts";
import { Refusal } from "../../src/errors.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import { ManualClock } from "../support/clock.ts";
import { asAdded } from "../support/domains.ts";
import { startDnsServer } from "../support/dns-server.ts";
import type { DnsServer, Failure } from "../support/dns-server.ts";

const hourMs = 3_600_000;
let dns: DnsServer;
let resolver: CachingResolver;
let clock: ManualClock;
let store: ReturnType<typeof memoryStore>;
let domains: Domains;
let told: string[];

beforeEach(async () => {
  dns = await startDnsServer();
  resolver = createResolver({
    servers: [dns.server],
    timeoutMs: 500,
    tries: 1,
    clock: idleClock,
    log: silentLog,
  });
  clock = new ManualClock();
  store = memoryStore();
  told = [];
  domains = open();
});
afterEach(async () => {
  resolver.stop();
  await dns.stop();
});

const open = (
  config: Partial<DomainsDeps["config"]> = {},
  poolAddresses: (accountKey: number) => string[] = () => [],
): Domains => {
  const domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: { hostname: "Mail.Host.Test", sources: ["192.0.2.10"], publicHost: "www.host.test", ...config },
    poolAddresses,
    clock,
    mint: createIdMint(),
  });
  domains.onStatus((domain, before) => void told.push(`${before} -> ${domain.status}`));
  return domains;
};

/** The four calls of the store that this room makes, in memory. */
function memoryStore(): DomainsDeps["store"] & { rows: SenderDomain[]; limits: number[] } {
  const rows: SenderDomain[] = [];
  const limits: number[] = [];
  const same = (account: number, name: string) =>
    rows.find((row) => row.accountKey === account && row.name === name);
  return {
    rows,
    limits,
    countDomains: (account) => Promise.resolve(rows.filter((row) => row.accountKey === account).length),
    domainByName: (account, name) => Promise.resolve(same(account, name) ?? null),
    createDomain(domain) {
      if (same(domain.accountKey, domain.name)) return Promise.resolve(null);
      const row = { ...domain, key: rows.length + 1 };
      rows.push(row);
      return Promise.resolve(row);
    },
    domainsToCheck(pendingBefore, othersBefore, limit) {
      limits.push(limit);
      return Promise.resolve(
        rows
          .filter(
            (row) => (row.checkedAt ?? -Infinity) < (row.status === "pending" ? pendingBefore : othersBefore),
          )
          .slice(0, limit),
      );
    },
    saveDomain(domain) {
      const at = rows.findIndex(({ key, revision }) => key === domain.key && revision === domain.revision);
      if (at >= 0) rows[at] = { ...domain, revision: domain.revision + 1 };
      return Promise.resolve(at >= 0);
    },
  };
}

/** A domain without the cost of keys of its own. */
async function put(name: string, status: DomainStatus, accountKey = 1): Promise<SenderDomain> {
  const key = {
    algorithm: "rsa-sha256",
    privatePem: "",
    publicKey: `key-of-${name}`,
    status: "active",
  } as const;
  const row = await store.createDomain({
    id: "dom_x",
    accountKey,
    name,
    status,
    returnPathDomain: `bounce.${name}`,
    records: [],
    dkimKeys: [{ ...key, selector: "svc1" }],
    createdAt: clock.now(),
    updatedAt: clock.now(),
    verifiedAt: status === "pending" ? null : clock.now(),
    checkedAt: null,
    failingSince: null,
    ...asAdded,
  });
  if (!row) throw new Error(`${name} is there already`);
  return row;
}

const names = { dkim: "svc1._domainkey.a.test", bounce: "bounce.a.test", dmarc: "_dmarc.a.test" };

function publish(name = "a.test"): void {
  dns.set(`svc1._domainkey.${name}`, "TXT", [`v=DKIM1; k=rsa; p=key-of-${name}`]);
  dns.set(`bounce.${name}`, "MX", ["10 mail.host.test"]);
  dns.set(`bounce.${name}`, "TXT", ["v=spf1 a:mail.host.test ip4:192.0.2.10 -all"]);
}

/** Verifies what the store holds of a domain now. */
async function verify(name = "a.test"): Promise<SenderDomain> {
  const row = await store.domainByName(1, name);
  if (!row) throw new Error(`${name} is not there`);
  return domains.verify(row);
}
const statuses = (domain: SenderDomain): string[] =>
  domain.records.map((record) => `${record.purpose} ${record.status}`);

test("adding makes two keys of their kinds and the records to publish, and nothing is verified yet", async () => {
  const domain = await domains.add(1, " A.Test. ");
  expect(domain).toMatchObject({
    name: "a.test",
    status: "pending",
    returnPathDomain: "bounce.a.test",
    verifiedAt: null,
    checkedAt: null,
  });
  expect(domain.id).toMatch(/^dom_[0-9a-z]{26}$/);
  expect(domain.dkimKeys.map((key) => [key.selector, key.algorithm, key.status])).toEqual([
    ["svc1", "rsa-sha256", "active"],
    ["svc1e", "ed25519-sha256", "active"],
  ]);
  for (const key of domain.dkimKeys) {
    const type = createPublicKey(key.privatePem).asymmetricKeyType;
    expect(type).toBe(key.algorithm === "rsa-sha256" ? "rsa" : "ed25519");
  }
  expect(domain.records.map((record) => record.value)).toContain("10 mail.host.test");
  expect(dns.queries).toEqual([]);
});

test("a domain whose records are published as shown is verified, long keys over several strings too", async () => {
  const added = await domains.add(1, "a.test");
  for (const record of added.records)
    dns.set(record.name, record.type === "MX" ? "MX" : "TXT", [record.value]);
  const domain = await domains.verify(added);
  expect(domain).toMatchObject({
    status: "verified",
    verifiedAt: clock.now(),
    checkedAt: clock.now(),
    failingSince: null,
  });
  expect(statuses(domain)).toEqual(["dkim ok", "dkim ok", "return_path ok", "spf ok", "dmarc ok"]);
  expect(domain.records.map((record) => record.found)).toEqual(
    domain.records.map((record) => [record.value]),
  );
  expect(await store.domainByName(1, "a.test")).toEqual(domain);
});

test("a domain is added once an account, and another account may have it too", async () => {
  await put("a.test", "pending");
  await expect(domains.add(1, "A.TEST")).rejects.toMatchObject({ code: "conflict" });
  expect(await domains.add(2, "a.test")).toMatchObject({ accountKey: 2 });
});

test("of two who add at once, one meets a conflict", async () => {
  const results = await Promise.allSettled([domains.add(1, "a.test"), domains.add(1, "a.test")]);
  expect(results.map((result) => result.status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(store.rows).toHaveLength(1);
});

test("an international name is kept in A-label form", async () => {
  expect(await domains.add(1, "bücher.test")).toMatchObject({ name: "xn--bcher-kva.test" });
});

test.each([
  "",
  "localhost",
  "test",
  "a..test",
  "-a.test",
  "a b.test",
  "192.0.2.1",
  "[192.0.2.1]",
  "a.test\r\nrset",
  `${"abcdefghi.".repeat(24)}test`,
])("%j is not a domain to send from", async (name) => {
  const refused = await domains.add(1, name).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(Refusal);
  expect(refused).toMatchObject({
    code: "validation_failed",
    extras: { errors: [{ field: "name", issue: expect.stringMatching(/./) }] },
  });
  expect(store.rows).toEqual([]);
});

test("a recommended record that is missing does not hold verification back", async () => {
  await put("a.test", "pending");
  publish();
  const domain = await verify();
  expect(domain.status).toBe("verified");
  expect(statuses(domain)).toContain("dmarc missing");
});

test("the SPF record names the addresses of the account's pools beside the server's, each once", async () => {
  domains = open({}, (accountKey) => (accountKey === 1 ? ["192.0.2.10", "192.0.2.77", "2001:db8::1"] : []));
  const spfOf = async (accountKey: number): Promise<string | undefined> =>
    (await domains.add(accountKey, "pooled.test")).records.find(({ purpose }) => purpose === "spf")?.value;
  expect(await spfOf(1)).toBe("v=spf1 a:mail.host.test ip4:192.0.2.10 ip4:192.0.2.77 ip6:2001:db8::1 -all");
  expect(await spfOf(2)).toBe("v=spf1 a:mail.host.test ip4:192.0.2.10 -all");
});

test("a pending domain with a record missing stays pending and is told which", async () => {
  await put("a.test", "pending");
  publish();
  dns.remove(names.bounce, "TXT");
  const domain = await verify();
  expect(domain).toMatchObject({ status: "pending", verifiedAt: null, failingSince: null });
  expect(domain.records.find((record) => record.purpose === "spf")).toMatchObject({
    status: "missing",
    found: [],
    issue: expect.stringContaining(names.bounce),
  });
});

test.each<Failure>(["servfail", "refused", "timeout", "malformed"])(
  "a DNS that fails (%s) verifies nobody and fails nobody",
  async (how) => {
    publish();
    await put("a.test", "pending");
    dns.fail(names.dkim, how);
    const pending = await verify();
    expect(pending.status).toBe("pending");
    expect(pending.records[0]).toMatchObject({
      status: "unknown",
      issue: expect.stringContaining("DNS lookup"),
    });

    dns.fail(names.dkim, null);
    expect((await verify()).status).toBe("verified");
    for (const name of Object.values(names)) dns.fail(name, how);
    await clock.advance(100 * hourMs);
    expect(await verify()).toMatchObject({ status: "verified", failingSince: null });
  },
);

test("a verified domain that fails sends for 72 hours more, then no longer, until it is mended", async () => {
  await put("a.test", "pending");
  publish();
  await verify();
  dns.set(names.dkim, "TXT", ["v=DKIM1; k=rsa; p=other"]);
  const failingSince = clock.now();
  expect(await verify()).toMatchObject({ status: "degraded", failingSince });
  expect(await domains.senderFor(1, "a.test")).toMatchObject({ ok: true });
  await clock.advance(72 * hourMs - 1);
  expect(await verify()).toMatchObject({ status: "degraded", failingSince });
  await clock.advance(1);
  expect(await verify()).toMatchObject({ status: "failed", failingSince });
  expect(await domains.senderFor(1, "a.test")).toMatchObject({
    ok: false,
    domain: { name: "a.test", status: "failed" },
  });
  publish();
  expect(await verify()).toMatchObject({ status: "verified", failingSince: null, verifiedAt: clock.now() });
});

test("a degraded domain that is mended in time keeps the day of its verification", async () => {
  const { verifiedAt } = await put("a.test", "verified");
  await verify();
  await clock.advance(hourMs);
  publish();
  expect(await verify()).toMatchObject({ status: "verified", failingSince: null, verifiedAt });
});

test("a suspended domain stays so whatever the DNS says", async () => {
  await put("a.test", "suspended");
  publish();
  expect(await verify()).toMatchObject({ status: "suspended", checkedAt: clock.now() });
});

test("a changed host name asks for its own records at the next check", async () => {
  await put("a.test", "verified");
  publish();
  domains = open({ hostname: "new.host.test", sources: [] });
  const domain = await verify();
  expect(domain.status).toBe("degraded");
  expect(domain.records.find((record) => record.purpose === "return_path")).toMatchObject({
    value: "10 new.host.test",
    found: ["10 mail.host.test"],
    status: "mismatch",
  });
});

test("what a zone holds is kept short and without control characters", async () => {
  await put("a.test", "pending");
  dns.set(names.dkim, "TXT", [...Array.from({ length: 40 }, () => "y".repeat(900)), "\u001b[2J"]);
  dns.set(names.dmarc, "TXT", ["\u001b[2Jé"]);
  const domain = await verify();
  expect(domain.records[0]?.found).toHaveLength(10);
  expect(
    domain.records
      .flatMap((record) => [...record.found, record.issue ?? ""])
      .filter((text) => text.length > 700 || /[^\x20-\x7e…]/.test(text)),
  ).toEqual([]);
});

test.each<[string, Record<string, DomainStatus>, string, string | null]>([
  ["itself", { "a.test": "verified" }, "a.test", "a.test"],
  ["in any case", { "a.test": "verified" }, "A.Test", "a.test"],
  ["a parent", { "a.test": "verified" }, "x.y.a.test", "a.test"],
  ["itself before its parent", { "a.test": "verified", "x.a.test": "degraded" }, "x.a.test", "x.a.test"],
  [
    "a verified parent of a pending one",
    { "a.test": "verified", "x.a.test": "pending" },
    "x.a.test",
    "a.test",
  ],
  ["nobody: pending", { "a.test": "pending" }, "a.test", null],
  ["nobody: failed", { "a.test": "failed" }, "a.test", null],
  [
    "nobody: suspended, whatever its parent is",
    { "a.test": "verified", "x.a.test": "suspended" },
    "x.a.test",
    null,
  ],
  ["nobody: a child does not speak for its parent", { "x.a.test": "verified" }, "a.test", null],
  ["nobody: a name that only ends alike", { "a.test": "verified" }, "evil-a.test", null],
])("who may send for a domain: %s", async (_, rows, from, expected) => {
  for (const [name, status] of Object.entries(rows)) await put(name, status);
  const found = await domains.senderFor(1, from);
  expect(found.ok ? found.domain.name : null).toBe(expected);
});

test("another account's domain is none, and a refusal names the domain that is nearest", async () => {
  await put("a.test", "verified", 2);
  expect(await domains.senderFor(1, "a.test")).toEqual({ ok: false, domain: null });
  await put("b.test", "pending");
  expect(await domains.senderFor(1, "x.b.test")).toMatchObject({ ok: false, domain: { name: "b.test" } });
});

test("pending domains are checked again after an hour, others after a day", async () => {
  await put("a.test", "pending");
  await put("b.test", "verified");
  publish("b.test");
  await domains.recheck();
  const asked = (): string[] => [
    ...new Set(dns.queries.splice(0).map((query) => query.name.split(".").slice(-2).join("."))),
  ];
  expect(asked()).toEqual(["a.test", "b.test"]);
  await domains.recheck();
  expect(asked()).toEqual([]);
  await clock.advance(hourMs + 1);
  await domains.recheck();
  expect(asked()).toEqual(["a.test"]);
  await clock.advance(23 * hourMs);
  await domains.recheck();
  expect(asked()).toEqual(["a.test", "b.test"]);
  expect(Math.max(...store.limits)).toBeLessThanOrEqual(1000);
});

test("rounds of re-checks do not overlap", async () => {
  await put("a.test", "pending");
  await Promise.all([domains.recheck(), domains.recheck()]);
  expect(store.limits).toHaveLength(1);
});
