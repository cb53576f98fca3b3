import { expect, test } from "vitest";
import { hostTls, tlsKey, type HostTls, type TlsFacts } from "../../src/delivery/tls-policy.ts";
import type { TlsaRecord } from "../../src/dns/tlsa.ts";

const usable: TlsaRecord = { usage: 3, selector: 1, matching: 1, data: "ab".repeat(32) };
const unusable: TlsaRecord = { ...usable, usage: 1 };
const tlsa = (...records: TlsaRecord[]) => ({ base: "mx.x.test", records });
const sts = (mode: "enforce" | "testing", ...mx: string[]) => ({ mode, mx });

const facts: TlsFacts = {
  domain: "x.test",
  host: "mx.x.test",
  operator: "opportunistic",
  tlsa: null,
  mtaSts: null,
};
const dane = {
  kind: "dane",
  policy: "dane",
  records: [usable],
  names: ["mx.x.test", "x.test"],
  digest: expect.any(String),
};

test.each<[string, Partial<TlsFacts>, object]>([
  ["nothing is known: TLS where it can be had", {}, { kind: "opportunistic" }],
  ["the operator wants TLS", { operator: "require" }, { kind: "encrypted", policy: "require" }],
  ["the operator wants a valid certificate", { operator: "verify" }, { kind: "verified", policy: "verify" }],
  ["MTA-STS enforce", { mtaSts: sts("enforce", "mx.x.test") }, { kind: "verified", policy: "mta-sts" }],
  ["MTA-STS enforce names another host", { mtaSts: sts("enforce", "other.test") }, { kind: "forbidden" }],
  ["MTA-STS testing asks for nothing", { mtaSts: sts("testing", "other.test") }, { kind: "opportunistic" }],
  [
    "MTA-STS testing leaves the operator's floor",
    { mtaSts: sts("testing", "other.test"), operator: "require" },
    { kind: "encrypted", policy: "require" },
  ],
  [
    "MTA-STS enforce is stricter than require",
    { mtaSts: sts("enforce", "*.x.test"), operator: "require" },
    { kind: "verified", policy: "mta-sts" },
  ],
  ["DANE", { tlsa: tlsa(usable) }, dane],
  ["DANE comes before MTA-STS", { tlsa: tlsa(usable), mtaSts: sts("enforce", "mx.x.test") }, dane],
  [
    "DANE decides for a host that MTA-STS does not name",
    { tlsa: tlsa(usable), mtaSts: sts("enforce", "o.test") },
    dane,
  ],
  ["a match of DANE is what verify asks for", { tlsa: tlsa(usable), operator: "verify" }, dane],
  ["of several records the usable ones count", { tlsa: tlsa(unusable, usable) }, dane],
  [
    "no usable record: TLS with any certificate",
    { tlsa: tlsa(unusable) },
    { kind: "encrypted", policy: "dane" },
  ],
  [
    "no usable record under verify: a valid certificate",
    { tlsa: tlsa(unusable), operator: "verify" },
    { kind: "verified", policy: "verify" },
  ],
  [
    "no usable record under MTA-STS: a valid certificate",
    { tlsa: tlsa(unusable), mtaSts: sts("enforce", "mx.x.test") },
    { kind: "verified", policy: "mta-sts" },
  ],
])("%s", (_what, given, expected) => {
  expect(hostTls({ ...facts, ...given })).toEqual(expected);
});

test("connections are shared by the same demand alone, in whatever order the records came", () => {
  const other: TlsaRecord = { ...usable, data: "cd".repeat(32) };
  const of = (...records: TlsaRecord[]) => {
    const tls = hostTls({ ...facts, tlsa: tlsa(...records) });
    return tls.kind === "forbidden" ? "" : tlsKey(tls);
  };
  expect(of(usable, other)).toBe(of(other, usable));
  const demands: HostTls[] = [
    { kind: "none" },
    { kind: "opportunistic" },
    { kind: "encrypted", policy: "require" },
    { kind: "encrypted", policy: "dane" },
    { kind: "verified", policy: "verify" },
    { kind: "verified", policy: "mta-sts" },
  ];
  const keys = [...demands.map(tlsKey), of(usable), of(other)];
  expect(new Set(keys).size).toBe(keys.length);
});
