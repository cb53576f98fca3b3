import { expect, test } from "vitest";
import { reportAddresses } from "../../src/tls-reports/record.ts";

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
