// What the DNS shows against what was asked for: a table of records that people really publish.
import { expect, test } from "vitest";
import { verifyDkim, verifyDmarc, verifyReturnPath } from "../../src/domains/verify-records.ts";
import type { Verdict } from "../../src/domains/verify-records.ts";
import { recordsFor } from "../../src/domains/records.ts";
import type { DkimKey } from "../../src/model/dkim-key.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";

const host = {
  hostname: "mail.host.test",
  publicHost: "www.host.test",
  sources: ["192.0.2.10", "2001:db8::10"],
};
const rsa = "MIIB".padEnd(392, "k");
const key = (
  selector: string,
  algorithm: DkimKey["algorithm"],
  publicKey: string,
  status: DkimKey["status"] = "active",
): DkimKey => ({
  selector,
  algorithm,
  publicKey,
  privatePem: "",
  status,
});
const keys = [key("svc1", "rsa-sha256", rsa), key("svc1e", "ed25519-sha256", "edKey=")];
const published = { name: "a.test", dkimKeys: keys, returnPathDomain: "bounce.a.test", trackingDomain: null };
const records = recordsFor(published, host);
const recordAt = (name: string, type: DnsRecord["type"] = "TXT"): DnsRecord => {
  const found = records.find((record) => record.name === name && record.type === type);
  if (!found) throw new Error(`no record ${name}`);
  return found;
};

test("a domain publishes two keys, the MX and SPF of its return path, and is advised a DMARC policy", () => {
  expect(
    records.map(({ purpose, type, name, value, required, status }) => ({
      purpose,
      type,
      name,
      value,
      required,
      status,
    })),
  ).toEqual([
    {
      purpose: "dkim",
      type: "TXT",
      name: "svc1._domainkey.a.test",
      value: `v=DKIM1; k=rsa; p=${rsa}`,
      required: true,
      status: "unchecked",
    },
    {
      purpose: "dkim",
      type: "TXT",
      name: "svc1e._domainkey.a.test",
      value: "v=DKIM1; k=ed25519; p=edKey=",
      required: true,
      status: "unchecked",
    },
    {
      purpose: "return_path",
      type: "MX",
      name: "bounce.a.test",
      value: "10 mail.host.test",
      required: true,
      status: "unchecked",
    },
    {
      purpose: "spf",
      type: "TXT",
      name: "bounce.a.test",
      value: "v=spf1 a:mail.host.test ip4:192.0.2.10 ip6:2001:db8::10 -all",
      required: true,
      status: "unchecked",
    },
    {
      purpose: "dmarc",
      type: "TXT",
      name: "_dmarc.a.test",
      value: "v=DMARC1; p=none",
      required: false,
      status: "unchecked",
    },
  ]);
});

test("a key that waits is published and not yet required, a retired one no more", () => {
  const dkimKeys = [
    ...keys,
    key("svc2", "rsa-sha256", rsa, "pending"),
    key("svc0", "rsa-sha256", rsa, "retired"),
  ];
  const rotating = recordsFor({ ...published, dkimKeys }, host);
  expect(
    rotating
      .filter((record) => record.purpose === "dkim")
      .map(({ name, required }) => [name.split(".")[0], required]),
  ).toEqual([
    ["svc1", true],
    ["svc1e", true],
    ["svc2", false],
    ["svc0", false],
  ]);
});

test("a name of its own for tracked links leads to the public host, and mail does without", () => {
  expect(recordsFor({ ...published, trackingDomain: "go.a.test" }, host).at(-1)).toMatchObject({
    purpose: "tracking",
    type: "CNAME",
    name: "go.a.test",
    value: "www.host.test",
    required: false,
  });
});

test("what was seen of a record is kept for as long as it stands", () => {
  const seen = records.map((record) => ({ ...record, status: "ok" as const, found: [record.value] }));
  const moved = recordsFor({ ...published, returnPathDomain: "rp.a.test" }, host, seen);
  expect(moved.map(({ purpose, status }) => `${purpose} ${status}`)).toEqual([
    "dkim ok",
    "dkim ok",
    "return_path unchecked",
    "spf unchecked",
    "dmarc ok",
  ]);
});

const dkim = recordAt("svc1._domainkey.a.test");
test.each<[string, string[], Verdict["status"], RegExp?]>([
  ["the value as shown", [dkim.value], "ok"],
  [
    "tags in another order, spaces inside the key",
    [`p=${rsa.slice(0, 200)} \t ${rsa.slice(200)} ; t=s;k=rsa;v=DKIM1;`],
    "ok",
  ],
  ["neither v= nor k=, whose defaults are right", [`p=${rsa}`], "ok"],
  ["sha256 among the hashes", [`v=DKIM1; h=sha1 : sha256; p=${rsa}`], "ok"],
  ["nothing", [], "missing", /no TXT record at svc1\._domainkey\.a\.test/],
  ["another key", ["v=DKIM1; k=rsa; p=OTHER"], "mismatch", /a different key/],
  ["half of the key", [`v=DKIM1; k=rsa; p=${rsa.slice(0, 230)}`], "mismatch", /cut short after 230 of 392/],
  ["a revoked key", ["v=DKIM1; k=rsa; p="], "mismatch", /revokes/],
  ["the key under another type", [`v=DKIM1; k=ed25519; p=${rsa}`], "mismatch", /k=ed25519 where k=rsa/],
  ["an SPF record from a wildcard", ["v=spf1 -all"], "mismatch", /not a DKIM key/],
  ["another version", [`v=DKIM2; p=${rsa}`], "mismatch", /version/],
  ["sha1 only", [`v=DKIM1; h=sha1; p=${rsa}`], "mismatch", /sha256/],
  ["mail among the services", [`v=DKIM1; s= tlsrpt : email; p=${rsa}`], "ok"],
  ["all services", [`v=DKIM1; s=*; p=${rsa}`], "ok"],
  ["a service that is not mail", [`v=DKIM1; s=tlsrpt; k=rsa; p=${rsa}`], "mismatch", /email in s=/],
  ["a tag that stands twice", [`v=DKIM1; n=a; n=b; p=${rsa}`], "mismatch", /the tag n= twice/],
  ["the key twice", [`v=DKIM1; p=${rsa}; p=${rsa}`], "mismatch", /the tag p= twice/],
  ["two records, one of them right", [dkim.value, "v=DKIM1; p=old"], "mismatch", /2 TXT records/],
])("DKIM: %s", (_, texts, status, words = /./) => {
  const verdict = verifyDkim(dkim, texts);
  expect(verdict.status).toBe(status);
  if (status === "ok") expect(verdict.issue).toBeNull();
  else expect(verdict.issue).toMatch(words);
});

test("a key in test mode is right, with a warning", () => {
  expect(verifyDkim(dkim, [`v=DKIM1; t=s:y; p=${rsa}`])).toEqual({
    status: "ok",
    issue: expect.stringContaining("t=y"),
  });
});

test("an Ed25519 key without its type is taken for RSA by receivers, so it is a mismatch", () => {
  expect(verifyDkim(recordAt("svc1e._domainkey.a.test"), ["p=edKey="])).toMatchObject({
    status: "mismatch",
    issue: expect.stringContaining("k=rsa"),
  });
});

const mx = recordAt("bounce.a.test", "MX");
test.each<[string, [number, string][], Verdict["status"], RegExp?]>([
  ["this host", [[10, "mail.host.test"]], "ok"],
  [
    "this host, another preference, another behind it",
    [
      [5, "mail.host.test"],
      [20, "backup.test"],
    ],
    "ok",
  ],
  ["nothing", [], "missing", /no MX record/],
  ["another host", [[10, "mx.other.test"]], "mismatch", /to mx\.other\.test instead of mail\.host\.test/],
  [
    "another host before this one",
    [
      [5, "mx.other.test"],
      [10, "mail.host.test"],
    ],
    "mismatch",
  ],
  [
    "another host beside this one",
    [
      [10, "mail.host.test"],
      [10, "mx.other.test"],
    ],
    "mismatch",
  ],
  ["a null MX", [[0, ""]], "mismatch", /to no host/],
])("return path: %s", (_, given, status, words = /./) => {
  const verdict = verifyReturnPath(
    mx,
    given.map(([preference, exchange]) => ({ preference, exchange })),
    host,
  );
  expect(verdict.status).toBe(status);
  if (status !== "ok") expect(verdict.issue).toMatch(words);
});

const dmarc = recordAt("_dmarc.a.test");
test.each<[string, string[], Verdict["status"]]>([
  ["the value as shown", [dmarc.value], "ok"],
  ["a strict policy with reports", ["v=DMARC1;p=Reject; rua=mailto:d@a.test"], "ok"],
  ["nothing", [], "missing"],
  ["another text", ["v=spf1 -all"], "missing"],
  ["no policy", ["v=DMARC1; rua=mailto:d@a.test"], "mismatch"],
  ["a policy that there is not", ["v=DMARC1; p=block"], "mismatch"],
  ["two policies", [dmarc.value, "v=DMARC1; p=reject"], "mismatch"],
])("DMARC: %s", (_, texts, status) => {
  expect(verifyDmarc(dmarc, texts).status).toBe(status);
});
