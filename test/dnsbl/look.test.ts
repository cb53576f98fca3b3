// What a blocklist's answers mean, asked of a real DNS server on loopback.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { createResolver } from "../../src/dns/resolve.ts";
import type { Resolver } from "../../src/dns/resolver.ts";
import { lookUp, reasonOf, testZone } from "../../src/dnsbl/look.ts";
import { zonesOf, type Zone } from "../../src/dnsbl/zones.ts";
import { silentLog } from "../../src/log.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";

const ip = "11.22.33.44";
const name = "44.33.22.11.bl.test";
const [ipv6, nibbles] = [
  "2001:db8::1",
  "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.bl.test",
];
const [listing6, clean6] = ["2", "1"].map(
  (last) => `${last}.0.0.0.0.0.f.7.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.bl.test`,
) as [string, string];
let dns: DnsServer;
let resolver: Resolver;
let zone: Zone;

beforeAll(async () => {
  dns = await startDnsServer();
  const log = silentLog;
  const one = { servers: [dns.server], timeoutMs: 150, tries: 1, clock: systemClock, log };
  resolver = createResolver(one).uncached;
  const named = { zone: "bl.test", name: "Test", codes: ["127.0.0.2-127.0.0.9"], removalUrl: null };
  [zone] = zonesOf([named], []) as [Zone];
});
afterAll(async () => {
  resolver.stop();
  await dns.stop();
});
beforeEach(() => {
  for (const one of [name, nibbles, "2.0.0.127.bl.test", "1.0.0.127.bl.test", listing6, clean6]) {
    dns.remove(one);
    dns.fail(one, null);
  }
  dns.queries.length = 0;
});

test("no such name, and a name without addresses, mean that the address is not listed", async () => {
  expect(await lookUp(resolver, zone, ip)).toEqual({ answer: "not_listed" });
  dns.set(name, "TXT", ["only text"]);
  expect(await lookUp(resolver, zone, ip)).toEqual({ answer: "not_listed" });
  expect(dns.queries.map((query) => [query.name, query.type])).toEqual([
    [name, "A"],
    [name, "A"],
  ]);
});

test("all documented codes of the answer are kept, in order and once", async () => {
  dns.set(name, "A", ["127.0.0.9", "127.0.0.2", "127.0.0.200", "127.0.0.2"]);
  expect(await lookUp(resolver, zone, ip)).toEqual({ answer: "listed", codes: ["127.0.0.2", "127.0.0.9"] });
});

test("a code that the zone does not document does not count", async () => {
  dns.set(name, "A", ["127.0.0.200"]);
  expect(await lookUp(resolver, zone, ip)).toEqual({ answer: "not_listed" });
});

test.each([
  [["127.255.255.254"], "refuses queries from this resolver"],
  [["127.0.0.2", "127.255.255.255"], "refuses queries from this resolver"],
  [["192.0.2.80"], "not a code of a blocklist"],
])("the answer %j says nothing about the address", async (records, detail) => {
  dns.set(name, "A", records);
  expect(await lookUp(resolver, zone, ip)).toEqual({
    answer: "unknown",
    silent: false,
    detail: expect.stringContaining(detail),
  });
});

test.each(["servfail", "refused", "timeout", "malformed", "compression_loop"] as const)(
  "%s is unknown",
  async (how) => {
    dns.set(name, "A", ["127.0.0.2"]);
    dns.fail(name, how);
    expect(await lookUp(resolver, zone, ip)).toMatchObject({ answer: "unknown", silent: true });
  },
);

test("an IPv6 address is asked by its nibbles, an IPv4-mapped one as IPv4", async () => {
  dns.set(nibbles, "A", ["127.0.0.2"]);
  expect(await lookUp(resolver, zone, ipv6)).toMatchObject({ answer: "listed" });
  await lookUp(resolver, zone, "::ffff:11.22.33.44");
  expect(dns.queries.map((query) => query.name)).toEqual([nibbles, name]);
});

test("the reason is one line without characters that a terminal obeys, and of bounded length", async () => {
  dns.set(name, "TXT", ["see\r\n \u001b[31mhttps://bl.test/?ip \u202e", "and \u0000more"]);
  expect(await reasonOf(resolver, zone, ip, ["127.0.0.2"])).toBe("see [31mhttps://bl.test/?ip and more");
  dns.set(name, "TXT", ["x".repeat(5000)]);
  expect(await reasonOf(resolver, zone, ip, ["127.0.0.2"])).toBe("x".repeat(500));
});

test("without a TXT record, or while it cannot be asked, the reason is what the zone documents of the code", async () => {
  const known = zonesOf([], []).find((one) => one.zone === "zen.spamhaus.org") as Zone;
  const own = { ...known, zone: "bl.test" };
  const words = "SBL: sends or supports spam; XBL: an infected or abused machine";
  expect(await reasonOf(resolver, own, ip, ["127.0.0.2", "127.0.0.4"])).toBe(words);
  dns.fail(name, "timeout");
  expect(await reasonOf(resolver, own, ip, ["127.0.0.2", "127.0.0.4"])).toBe(words);
  expect(await reasonOf(resolver, zone, ip, ["127.0.0.2"])).toBe("");
});

test("a zone that lists 127.0.0.2 and not 127.0.0.1 is used, for IPv6 where it lists that test address", async () => {
  dns.set("2.0.0.127.bl.test", "A", ["127.0.0.200"]);
  expect(await testZone(resolver, zone)).toEqual({ status: "ok", ipv6: false });
  dns.set(listing6, "A", ["127.0.0.2"]);
  expect(await testZone(resolver, zone)).toEqual({ status: "ok", ipv6: true });
  dns.set(clean6, "A", ["127.0.0.2"]);
  expect(await testZone(resolver, zone)).toEqual({ status: "ok", ipv6: false });
});

test("a zone of which IPv6 is known is not asked for its IPv6 test address", async () => {
  dns.set("2.0.0.127.bl.test", "A", ["127.0.0.2"]);
  expect(await testZone(resolver, { ...zone, ipv6: true })).toEqual({ status: "ok", ipv6: true });
  expect(dns.queries).toHaveLength(2);
});

test("a zone that lists everything, nothing, or is somebody else's by now is broken", async () => {
  expect(await testZone(resolver, zone)).toMatchObject({ status: "broken" });
  dns.set("2.0.0.127.bl.test", "A", ["192.0.2.80"]);
  expect(await testZone(resolver, zone)).toMatchObject({ status: "broken" });
  dns.set("2.0.0.127.bl.test", "A", ["127.0.0.2"]);
  dns.set("1.0.0.127.bl.test", "A", ["127.0.0.2"]);
  expect(await testZone(resolver, zone)).toMatchObject({ status: "broken" });
});

test("a zone that does not answer its test, or refuses the resolver, is unknown", async () => {
  dns.set("2.0.0.127.bl.test", "A", ["127.255.255.254"]);
  expect(await testZone(resolver, zone)).toMatchObject({
    status: "unknown",
    detail: expect.stringContaining("dns.servers"),
  });
  dns.set("2.0.0.127.bl.test", "A", ["127.0.0.2"]);
  dns.fail("1.0.0.127.bl.test", "servfail");
  expect(await testZone(resolver, zone)).toMatchObject({ status: "unknown" });
});
