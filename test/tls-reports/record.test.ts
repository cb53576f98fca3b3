import { expect, test } from "vitest";
import { reportAddresses } from "../../src/tls-reports/record.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

const shown = (records: string[]): string[] =>
  reportAddresses(records).map((to) => (to.kind === "mailto" ? to.address.email : to.url.href));

test.each<[string, string[], string[]]>([
  ["a mailbox", ["v=TLSRPTv1; rua=mailto:tls@x.test"], ["tls@x.test"]],
  ["a web server", ["v=TLSRPTv1;rua=https://x.test/tls?a=1"], ["https://x.test/tls?a=1"]],
  ["both", ["v=TLSRPTv1; rua=mailto:a@x.test, https://x.test/"], ["a@x.test", "https://x.test/"]],
  ["an address with encoded characters", ["v=TLSRPTv1; rua=mailto:a%2Bb@x.test?subject=x"], ["a+b@x.test"]],
  ["further fields", ["v=TLSRPTv1; x=y; rua=mailto:a@x.test;"], ["a@x.test"]],
  ["texts of others beside it", ["v=spf1 -all", "v=TLSRPTv1; rua=mailto:a@x.test"], ["a@x.test"]],
  ["two records", ["v=TLSRPTv1; rua=mailto:a@x.test", "v=TLSRPTv1; rua=mailto:b@x.test"], []],
  ["another version", ["v=TLSRPTv12; rua=mailto:a@x.test"], []],
  ["no rua", ["v=TLSRPTv1;"], []],
  ["plain HTTP, a file, nonsense", ["v=TLSRPTv1; rua=http://x.test/,file:///etc/passwd,?,mailto:%"], []],
  ["a login in the address", ["v=TLSRPTv1; rua=https://a:b@x.test/"], []],
  ["no address in it", ["v=TLSRPTv1; rua=mailto:nobody,mailto:a@x.test%0d%0aBcc:b@x.test"], []],
  [
    "more than four",
    [`v=TLSRPTv1; rua=${Array.from({ length: 9 }, (_, i) => `mailto:a${i}@x.test`).join(",")}`],
    ["a0@x.test", "a1@x.test", "a2@x.test", "a3@x.test"],
  ],
])("where reports go: %s", (_what, records, addresses) => {
  expect(shown(records)).toEqual(addresses);
});

const spaces = " ".repeat(32_000);
test.each([
  ["spaces", `rua=${spaces}a${spaces}b`],
  ["commas", `rua=${",".repeat(60_000)}`],
  ["addresses", `rua=${"https://a.test,".repeat(4_000)}`],
  ["no address", `rua=${"mailto:a,".repeat(6_000)}`],
])("a record of 64 KB of %s is read in less than 20 ms", (_what, field) => {
  const enough = here(20);
  expect(leastCpuMs(enough, () => reportAddresses([`v=TLSRPTv1; ${field}`]))).toBeLessThan(enough);
});
