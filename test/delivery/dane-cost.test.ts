// What a hostile zone and a hostile chain cost at most.
import { X509Certificate } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { daneProblem } from "../../src/delivery/dane.ts";
import { hostTls } from "../../src/delivery/tls-policy.ts";
import { readTlsa, type TlsaRecord } from "../../src/dns/tlsa.ts";
import { createAuthority, tlsaOf, type Authority } from "../support/certificates.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

let leaf: X509Certificate;
let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority("a");
  leaf = new X509Certificate((await authority.issue(["mail.test"])).cert);
});

test("a message full of TLSA records is held against a certificate in less than 20 ms", () => {
  const records: TlsaRecord[] = Array.from({ length: 128 }, (_, i) => ({
    usage: 2 + (i % 2),
    selector: (i >> 1) % 2,
    matching: 0,
    data: "ab".repeat(500),
  }));
  const enough = here(20);
  expect(leastCpuMs(enough, () => daneProblem(leaf, records, ["mail.test"], Date.now()))).toBeLessThan(
    enough,
  );
  const facts = { domain: "x.test", host: "mail.test", operator: "opportunistic" as const, mtaSts: null };
  const tlsa = { base: "mail.test", records };
  expect(leastCpuMs(enough, () => hostTls({ ...facts, tlsa }))).toBeLessThan(enough);
});

test("of authorities that all have the issuer's name few signatures are checked", async () => {
  let verified = 0;
  const sent: X509Certificate[] = [leaf];
  for (let i = 0; i < 9; i++) sent.push(new X509Certificate((await createAuthority("a")).cert));
  for (const [i, certificate] of sent.entries()) {
    const verify = certificate.verify.bind(certificate);
    Object.defineProperties(certificate, {
      issuerCertificate: { value: sent[i + 1] },
      verify: { value: (key: Parameters<typeof verify>[0]) => ((verified += 1), verify(key)) },
    });
  }
  const records = [readTlsa(tlsaText(sent[9]))];
  expect(daneProblem(leaf, records, ["mail.test"], Date.now())).toContain("not signed by the authority");
  expect(verified).toBeLessThanOrEqual(12);
});

const tlsaText = (certificate: X509Certificate | undefined): string => {
  const [usage, selector, matching, data = ""] = tlsaOf(certificate?.toString() ?? "", 2).split(" ");
  return [usage, selector, matching].map((one) => `0${one}`).join("") + data;
};
