// What is done to a zone for each thing that may stand there already. The wire, and real servers: test/peers/publish.test.ts.
import { expect, test } from "vitest";
import type { Primary, Update } from "../../src/dns/primary.ts";
import { textData, textOf, uint16, wireName } from "../../src/dns/raw-message.ts";
import { planPublication, publish } from "../../src/domains/publish.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";

type Standing = Record<string, string[]>;
const codes: Record<string, number> = { A: 1, CNAME: 5, MX: 15, TXT: 16 };

/** A primary of acme.test that has what it is given, takes every update, and writes down which. */
function primaryWith(standing: Standing): { primary: Primary; updates: Update[] } {
  const updates: Update[] = [];
  const at = (name: string, type: number): string[] => {
    const word = Object.keys(codes).find((one) => codes[one] === type) ?? "";
    return standing[`${name} ${word}`] ?? [];
  };
  const primary: Primary = {
    shown: "ns.test:53",
    zoneOf: async () => ({ kind: "zone", zone: "acme.test" }),
    records: async (name, type) => ({
      kind: "records",
      alias: at(name, 5)[0] ?? null,
      records: at(name, type).map((text) => {
        const [preference, inner = ""] = type === 15 ? text.split(" ") : ["0", text];
        const data =
          type === 15 ? Buffer.concat([uint16(Number(preference)), wireName(inner)]) : textData(text);
        return { name, type, class: 1, ttlSeconds: 77, data, inner, afterInner: 0, start: 0 };
      }),
    }),
    update: async (update) => {
      updates.push(update);
      return { kind: "done" };
    },
  };
  return { primary, updates };
}

const record = (
  purpose: DnsRecord["purpose"],
  type: DnsRecord["type"],
  name: string,
  value: string,
): DnsRecord => {
  return { purpose, type, name, value, required: true, status: "unchecked", found: [], issue: null };
};
const keyValue = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const dkim = record("dkim", "TXT", "s1._domainkey.acme.test", keyValue);
const spf = record("spf", "TXT", "bounce.acme.test", "v=spf1 a:mail.test ip4:192.0.2.1 -all");
const mx = record("return_path", "MX", "bounce.acme.test", "10 mail.test");
const dmarc = record("dmarc", "TXT", "_dmarc.acme.test", "v=DMARC1; p=none");
const link = record("tracking", "CNAME", "links.acme.test", "www.test");

const cases: [string, DnsRecord, Standing, string, string | null][] = [
  ["a key where nothing stands", dkim, {}, "add", null],
  ["a key that is there", dkim, { "s1._domainkey.acme.test TXT": [keyValue] }, "keep", "it is there"],
  [
    "a key that is there, written otherwise",
    dkim,
    { "s1._domainkey.acme.test TXT": [keyValue.replace("v=DKIM1; ", "")] },
    "keep",
    "it is there",
  ],
  [
    "a key beside another record",
    dkim,
    { "s1._domainkey.acme.test TXT": ["v=DKIM1; p=other"] },
    "conflict",
    "another TXT record",
  ],
  [
    "a key where an alias stands",
    dkim,
    { "s1._domainkey.acme.test CNAME": ["keys.esp.test"] },
    "conflict",
    "alias (CNAME) of keys.esp.test",
  ],
  [
    "SPF beside a text of another kind",
    spf,
    { "bounce.acme.test TXT": ["site-verification=1"] },
    "add",
    null,
  ],
  ["SPF that is there", spf, { "bounce.acme.test TXT": ["x", spf.value] }, "keep", "it is there"],
  [
    "SPF of ours for fewer addresses",
    spf,
    { "bounce.acme.test TXT": ["v=spf1 a:mail.test -all"] },
    "replace",
    "takes the place of v=spf1 a:mail.test -all",
  ],
  [
    "SPF of others",
    spf,
    { "bounce.acme.test TXT": ["v=spf1 include:esp.test ~all"] },
    "conflict",
    "another SPF record: v=spf1 include:esp.test ~all",
  ],
  [
    "SPF of ours to which someone added",
    spf,
    { "bounce.acme.test TXT": ["v=spf1 a:mail.test include:esp.test -all"] },
    "conflict",
    "another SPF record",
  ],
  [
    "SPF twice",
    spf,
    { "bounce.acme.test TXT": [spf.value, "v=spf1 -all"] },
    "conflict",
    "another SPF record",
  ],
  ["a return path that has our MX", mx, { "bounce.acme.test MX": ["20 mail.test"] }, "keep", "it is there"],
  [
    "a return path with an MX of others",
    mx,
    { "bounce.acme.test MX": ["10 mx.esp.test"] },
    "conflict",
    "another MX: 10 mx.esp.test",
  ],
  [
    "a policy where the owner has one",
    dmarc,
    { "_dmarc.acme.test TXT": ["v=DMARC1; p=reject"] },
    "keep",
    "it has a policy",
  ],
  [
    "a policy beside one that is void",
    dmarc,
    { "_dmarc.acme.test TXT": ["v=DMARC1"] },
    "conflict",
    "another DMARC record",
  ],
  ["a policy beside a text of another kind", dmarc, { "_dmarc.acme.test TXT": ["x"] }, "add", null],
  ["a link's name that leads here", link, { "links.acme.test CNAME": ["www.test"] }, "keep", "it is there"],
  [
    "a link's name that leads elsewhere",
    link,
    { "links.acme.test CNAME": ["esp.test"] },
    "conflict",
    "alias of esp.test",
  ],
  [
    "a link's name with an address",
    link,
    { "links.acme.test A": ["192.0.2.9"] },
    "conflict",
    "other records",
  ],
  [
    "a return path where a wildcard answers",
    mx,
    { "bounce.acme.test MX": ["5 mx.esp.test"], "*.acme.test MX": ["5 mx.esp.test"] },
    "add",
    null,
  ],
  [
    "a key where a wildcard makes an alias",
    dkim,
    { "s1._domainkey.acme.test CNAME": ["esp.test"], "*.acme.test CNAME": ["esp.test"] },
    "add",
    null,
  ],
  [
    "a link's name where a wildcard has an address",
    link,
    { "links.acme.test A": ["192.0.2.9"], "*.acme.test A": ["192.0.2.9"] },
    "add",
    null,
  ],
  [
    "a return path that a wildcard gives",
    mx,
    { "bounce.acme.test MX": ["10 mail.test"], "*.acme.test MX": ["10 mail.test"] },
    "add",
    "a wildcard gives the same",
  ],
  [
    "a policy of the owner's that a wildcard has too",
    dmarc,
    { "_dmarc.acme.test TXT": ["v=DMARC1; p=reject"], "*.acme.test TXT": ["v=DMARC1; p=reject"] },
    "add",
    null,
  ],
  [
    "a return path beside a wildcard of another value",
    mx,
    { "bounce.acme.test MX": ["5 mx.esp.test"], "*.acme.test MX": ["6 mx.esp.test"] },
    "conflict",
    "another MX",
  ],
  [
    "text with control characters",
    spf,
    { "bounce.acme.test TXT": ["v=spf1 \u001b[2J ~all"] },
    "conflict",
    "v=spf1 ?[2J ~all",
  ],
];

test.each(cases)("%s", async (_, wanted, standing, act, why) => {
  const plan = await planPublication(primaryWith(standing).primary, [wanted]);
  if (plan.kind === "failed") throw new Error(plan.why);
  expect(plan.changes).toHaveLength(1);
  expect(plan.changes[0]?.act).toBe(act);
  if (why === null) expect(plan.changes[0]?.why).toBeNull();
  else expect(plan.changes[0]?.why).toContain(why);
});

test("a text is added to those that stand, which are the prerequisite and keep their TTL; only SPF of ours is removed", async () => {
  const standing = { "bounce.acme.test TXT": ["site-verification=1", "v=spf1 a:mail.test -all"] };
  const { primary, updates } = primaryWith(standing);
  const plan = await planPublication(primary, [spf, dkim, link]);
  if (plan.kind === "failed") throw new Error(plan.why);
  await publish(primary, plan.changes);
  const shown = (records: Update["changes"]) =>
    records.map(({ name, type, class: cls, ttlSeconds = 0, data }) => {
      return [name, type, cls, ttlSeconds, data && (type === 16 ? textOf(data) : data.length)];
    });
  expect(updates).toHaveLength(1);
  expect(shown(updates[0]?.prerequisites ?? [])).toEqual([
    ["bounce.acme.test", 16, 1, 0, "site-verification=1"],
    ["bounce.acme.test", 16, 1, 0, "v=spf1 a:mail.test -all"],
    ["s1._domainkey.acme.test", 16, 254, 0, undefined],
    ["s1._domainkey.acme.test", 5, 254, 0, undefined],
    ["links.acme.test", 255, 254, 0, undefined],
  ]);
  expect(shown(updates[0]?.changes ?? [])).toEqual([
    ["bounce.acme.test", 16, 254, 0, "v=spf1 a:mail.test -all"],
    ["bounce.acme.test", 16, 1, 77, spf.value],
    ["s1._domainkey.acme.test", 16, 1, 3600, keyValue],
    ["links.acme.test", 5, 1, 3600, 10],
  ]);
});

test.each([
  [link, { "links.acme.test CNAME": ["www.test"], "*.acme.test CNAME": ["www.test"] }],
  [mx, { "bounce.acme.test MX": ["10 mail.test"], "*.acme.test MX": ["10 mail.test"] }],
])(
  "what a wildcard gives already is published at the name too, once and again: $purpose",
  async (own, standing) => {
    const { primary, updates } = primaryWith(standing);
    const plan = await planPublication(primary, [own]);
    if (plan.kind === "failed") throw new Error(plan.why);
    expect(await publish(primary, plan.changes)).toEqual({ kind: "published" });
    expect(updates[0]?.prerequisites).toEqual([]);
    expect(updates[0]?.changes).toMatchObject([{ name: own.name, class: 1 }]);
  },
);

test("an update that the server accepted and does not show is a failure", async () => {
  const { primary } = primaryWith({});
  const plan = await planPublication(primary, [dkim]);
  if (plan.kind === "failed") throw new Error(plan.why);
  expect(await publish(primary, plan.changes)).toMatchObject({
    kind: "failed",
    why: expect.stringContaining("does not show the TXT record at s1._domainkey.acme.test"),
  });
});

test("a text of several strings, of none and of strings that are cut short", () => {
  const long = "ü".repeat(300);
  expect(textData(long).length).toBe(603);
  expect(textOf(textData(long))).toBe(long);
  expect(textOf(textData(""))).toBe("");
  expect(textOf(Buffer.from([5, 65]))).toBeNull();
});
