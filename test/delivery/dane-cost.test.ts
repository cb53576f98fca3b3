// What a hostile zone and a hostile chain cost at most.
import { X509Certificate } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { daneProblem } from "../../src/delivery/dane.ts";
import { hostTls } from "../../src/delivery/tls-policy.ts";
import type { TlsaRecord } from "../../src/dns/tlsa.ts";
import { createAuthority } from "../support/certificates.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

let leaf: X509Certificate;
beforeAll(async () => {
  leaf = new X509Certificate((await (await createAuthority("a")).issue(["mail.test"])).cert);
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
