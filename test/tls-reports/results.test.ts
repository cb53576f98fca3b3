import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { TlsResult, TlsResultCount } from "../../src/model/tls-result.ts";
import { createTlsResults, tlsReportTest } from "../../src/tls-reports/results.ts";
import { ManualClock } from "../support/clock.ts";

const result = (over: Partial<TlsResult> = {}): TlsResult => ({
  domain: "x.test",
  policy: { type: "no-policy-found", strings: [], domain: "x.test", mxHosts: [] },
  failure: null,
  reason: "",
  ...over,
});
const failure = {
  type: "validation-failure" as const,
  sendingIp: null,
  mxHost: "mail.x.test",
  receivingIp: null,
};

function made(addTlsResults: (counts: TlsResultCount[]) => Promise<void>) {
  const clock = new ManualClock(Date.parse("2026-11-26T23:59:59Z"));
  return { clock, results: createTlsResults({ store: { addTlsResults }, clock, log: silentLog }) };
}

test("equal results of a UTC day are counted together, and written once", async () => {
  const written: TlsResultCount[] = [];
  const { clock, results } = made(async (counts) => void written.push(...counts));
  for (let i = 0; i < 3; i++) results.note(result());
  results.note(result({ failure, reason: "the first" }));
  results.note(result({ failure, reason: "another" }));
  await clock.advance(1000);
  results.note(result());
  await results.keep();
  await results.keep();
  const day = Date.parse("2026-11-26T00:00:00Z") / 86_400_000;
  expect(written.map((one) => [one.day - day, one.sessions, one.reason])).toEqual([
    [0, 3, ""],
    [0, 2, "the first"],
    [1, 1, ""],
  ]);
});

test("results of any number of kinds take bounded memory, and a store that fails stops nothing", async () => {
  let rows = 0;
  const { results } = made(async (counts) => {
    rows += counts.length;
    if (rows > 1000) throw new Error("the disk is full");
  });
  for (let i = 0; i < 100_000; i++) results.note(result({ domain: `${"d".repeat(200)}${i}.test` }));
  await results.keep();
  expect(rows).toBe(1500);
  results.note(result());
  await results.keep();
  expect(rows).toBe(1501);
});

test("of a policy as long as its domain likes only the first lines are kept", async () => {
  const written: TlsResultCount[] = [];
  const { results } = made(async (counts) => void written.push(...counts));
  const long = Array.from({ length: 1000 }, (_, i) => `mx: ${i}.${"a".repeat(60)}.test`);
  results.note(result({ policy: { type: "sts", strings: long, domain: "x.test", mxHosts: long } }));
  results.note(
    result({ policy: { type: "tlsa", strings: ["f".repeat(9_000)], domain: "x.test", mxHosts: [] } }),
  );
  await results.keep();
  expect(written.map(({ policy }) => policy.strings.length)).toEqual([57, 0]);
  expect(Math.max(...written.map(({ policy }) => JSON.stringify(policy).length))).toBeLessThan(9_000);
});

test("a TLS report is the operations account's mail to anyone but the operator", () => {
  const isReport = tlsReportTest(5, "ops@Svc.test");
  const job = (accountKey: number, rcptTo: string) => ({ message: { accountKey }, rcptTo });
  expect(isReport(job(5, "tls@x.test"))).toBe(true);
  expect(isReport(job(5, "ops@svc.test"))).toBe(false);
  expect(isReport(job(1, "tls@x.test"))).toBe(false);
  expect(tlsReportTest(null, null)(job(5, "tls@x.test"))).toBe(false);
});
