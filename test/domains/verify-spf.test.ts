// SPF of the return path as receivers evaluate it (RFC 7208), over a DNS that a test writes down.
import { expect, test } from "vitest";
import type { DnsAnswer, MxRecord } from "../../src/dns/resolver.ts";
import { verifySpf } from "../../src/domains/verify-spf.ts";
import type { Verdict } from "../../src/domains/verify-records.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";

const host = {
  hostname: "mail.host.test",
  publicHost: "www.host.test",
  sources: ["192.0.2.10", "2001:db8::10"],
};
const value = "v=spf1 a:mail.host.test ip4:192.0.2.10 ip6:2001:db8::10 -all";
const spf: DnsRecord = {
  purpose: "spf",
  type: "TXT",
  name: "bounce.a.test",
  value,
  required: true,
  status: "unchecked",
  found: [],
  issue: null,
};

/** `txt spfi.test`: its records; null cannot be told; what is missing does not exist. */
type Zone = Record<string, (string | MxRecord)[] | null>;

function resolverOf(zone: Zone) {
  const asked: string[] = [];
  const answer =
    <T extends string | MxRecord>(type: string) =>
    async (name: string): Promise<DnsAnswer<T>> => {
      asked.push(`${type} ${name}`);
      const records = zone[`${type} ${name}`];
      if (records === undefined) return { kind: "nxdomain" };
      if (records === null) return { kind: "failed", why: "timeout" };
      return { kind: "found", records: records as T[], ttlSeconds: 60, authenticated: false };
    };
  const resolver = {
    a: answer<string>("a"),
    aaaa: answer<string>("aaaa"),
    mx: answer<MxRecord>("mx"),
    txt: answer<string>("txt"),
  };
  return { asked, resolver };
}

const verify = (texts: string[], zone: Zone = {}, sending = host): Promise<Verdict> =>
  verifySpf(spf, texts, sending, resolverOf(zone).resolver);
const us = { "txt spfi.test": [value] };
const many = (count: number): string =>
  Array.from({ length: count }, (_, i) => `include:n${i}.test`).join(" ");
const others: Zone = Object.fromEntries(
  Array.from({ length: 12 }, (_, i) => [`txt n${i}.test`, ["v=spf1 ip4:198.51.100.1 -all"]]),
);

test.each<[string, string[], Zone?]>([
  ["the value as shown", [value]],
  ["the host alone, in capitals and with a final dot", ["V=SPF1 A:Mail.Host.Test. ~all"]],
  ["the host with a prefix length", ["v=spf1 a:mail.host.test/24//64 -all"]],
  ["networks that hold every address", ["v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all"]],
  ["beside records of others", ["google-site-verification=x", value]],
  [
    "the MX of the return path, which is us",
    ["v=spf1 mx -all"],
    {
      "mx bounce.a.test": [{ preference: 10, exchange: "mail.host.test" }],
    },
  ],
  ["an include that names us", ["v=spf1 include:spfi.test -all"], us],
  ["a redirect to what names us", ["v=spf1 redirect=spfi.test"], us],
  [
    "an include in an include",
    ["v=spf1 include:o.test -all"],
    { ...us, "txt o.test": ["v=spf1 include:spfi.test"] },
  ],
  [
    "another host that has our addresses",
    ["v=spf1 a:out.test -all"],
    {
      "a out.test": ["192.0.2.10"],
      "aaaa out.test": ["2001:db8::10"],
    },
  ],
  [
    "another host in our networks",
    ["v=spf1 a:out.test/24//32 -all"],
    {
      "a out.test": ["192.0.2.1"],
      "aaaa out.test": ["2001:db8::1"],
    },
  ],
  [
    "a look-up that finds something for everybody",
    ["v=spf1 exists:yes.test -all"],
    { "a yes.test": ["127.0.0.2"] },
  ],
  ["everybody", ["v=spf1 +all"]],
  ["unknown modifiers, which are passed over", [`${value} exp=why.test x-y=z`]],
  [
    "ten look-ups, the last of which names us",
    [`v=spf1 ${many(9)} include:spfi.test -all`],
    {
      ...others,
      "txt spfi.test": ["v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all"],
    },
  ],
  ["two void look-ups before us", ["v=spf1 a:x1.test a:x2.test a:mail.host.test -all"]],
])("passes: %s", async (_, texts, zone) => {
  expect(await verify(texts, zone)).toEqual({ status: "ok", issue: null });
});

test.each<[string, string[], Verdict["status"], RegExp, Zone?]>([
  ["nothing", [], "missing", /no SPF TXT record at bounce\.a\.test/],
  ["other texts only", ["v=spf10 +all", "v=DMARC1; p=none"], "missing", /./],
  ["two policies", [value, "v=spf1 -all"], "mismatch", /2 SPF records.*void/],
  [
    "one of two addresses",
    ["v=spf1 ip4:192.0.2.0/24 -all"],
    "mismatch",
    /gives fail for 2001:db8::10: the term -all decides; add a:mail\.host\.test before it/,
  ],
  [
    "another host",
    ["v=spf1 a:other.test ~all"],
    "mismatch",
    /gives softfail for 192\.0\.2\.10: the term ~all/,
    { "a other.test": ["198.51.100.1"] },
  ],
  [
    "another's MX",
    ["v=spf1 mx:other.test -all"],
    "mismatch",
    /-all/,
    { "mx other.test": [{ preference: 1, exchange: "" }] },
  ],
  [
    "the host, failing",
    ["v=spf1 -a:mail.host.test +all"],
    "mismatch",
    /the term -a:mail\.host\.test decides/,
  ],
  [
    "a network that fails before us",
    ["v=spf1 -ip4:192.0.0.0/8 a:mail.host.test -all"],
    "mismatch",
    /the term -ip4:192\.0\.0\.0\/8 decides/,
  ],
  ["the host behind the end", ["v=spf1 -all a:mail.host.test"], "mismatch", /-all decides/],
  ["no mechanism", ["v=spf1"], "mismatch", /no term of it matches/],
  ["an unknown mechanism behind us", ["v=spf1 a:mail.host.test foo:bar -all"], "mismatch", /void.*foo:bar/],
  ["a network that is none", ["v=spf1 ip4:999.1.1.1 a:mail.host.test"], "mismatch", /void.*ip4:999/],
  ["a prefix that is none", ["v=spf1 a:mail.host.test/33 -all"], "mismatch", /void.*\/33/],
  ["a mechanism without its domain", ["v=spf1 include: a:mail.host.test"], "mismatch", /void.*include:/],
  ["redirect twice", ["v=spf1 redirect=spfi.test redirect=spfi.test"], "mismatch", /void.*once/, us],
  [
    "twelve includes before us",
    [`v=spf1 ${many(12)} a:mail.host.test -all`],
    "mismatch",
    /void.*include:n10\.test.*10 look-ups/,
    others,
  ],
  [
    "an include without a record",
    ["v=spf1 include:none.test a:mail.host.test"],
    "mismatch",
    /void.*none\.test has no SPF record/,
  ],
  [
    "an include of itself",
    ["v=spf1 include:me.test -all"],
    "mismatch",
    /void.*10 look-ups/,
    { "txt me.test": ["v=spf1 include:me.test"] },
  ],
  [
    "three void look-ups before us",
    ["v=spf1 a:x1.test a:x2.test a:x3.test a:mail.host.test -all"],
    "mismatch",
    /void.*a:x3\.test/,
  ],
  [
    "an include whose all passes nobody",
    ["v=spf1 include:spfi.test ?all"],
    "mismatch",
    /gives neutral/,
    { "txt spfi.test": ["v=spf1 -all"] },
  ],
  [
    "what cannot be asked",
    ["v=spf1 include:spfi.test -all"],
    "unknown",
    /include:spfi\.test/,
    { "txt spfi.test": null },
  ],
  ["an MX that cannot be asked", ["v=spf1 mx -all"], "unknown", /mx/, { "mx bounce.a.test": null }],
  ["a macro", ["v=spf1 exists:%{i}.ok.test -all"], "mismatch", /-all decides/],
  ["ptr", ["v=spf1 ptr -all"], "mismatch", /-all decides/],
  ["noise", [`v=spf1 ${"x ".repeat(5000)}`], "mismatch", /void/],
])("does not pass: %s", async (_, texts, status, words, zone) => {
  const verdict = await verify(texts, zone);
  expect(verdict.status).toBe(status);
  expect(verdict.issue).toMatch(words);
});

test("without configured addresses those of the host name are judged, and without any only the name counts", async () => {
  const bare = { ...host, sources: [] };
  const zone = { "a mail.host.test": ["127.0.0.1"] };
  expect((await verify(["v=spf1 ip4:127.0.0.1 -all"], zone, bare)).status).toBe("ok");
  expect(await verify(["v=spf1 -ip4:127.0.0.0/8 a:mail.host.test -all"], zone, bare)).toMatchObject({
    status: "mismatch",
    issue: expect.stringContaining("-ip4:127.0.0.0/8 decides"),
  });
  expect((await verify(["v=spf1 ip4:0.0.0.0/0 -all"], {}, bare)).status).toBe("mismatch");
  expect((await verify(["v=spf1 a:mail.host.test -all"], {}, bare)).status).toBe("ok");
});

test("a hostile record costs at most ten look-ups and those of their hosts", async () => {
  const exchanges = Array.from({ length: 10 }, (_, i) => ({ preference: 1, exchange: `m${i}.test` }));
  const hosts: Zone = Object.fromEntries(
    exchanges.map(({ exchange }) => [`a ${exchange}`, ["198.51.100.1"]]),
  );
  const { asked, resolver } = resolverOf({ "mx big.test": exchanges, ...hosts });
  await verifySpf(spf, [`v=spf1 ${"mx:big.test ".repeat(400)}-all`], host, resolver);
  expect(asked.length).toBeLessThanOrEqual(10 + 10 * 10);
});
