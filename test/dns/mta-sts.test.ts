import { expect, test } from "vitest";
import { announcedId, namesHost, readPolicy } from "../../src/dns/mta-sts.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

test.each<[string, string[], string | null]>([
  ["one record", ["v=STSv1; id=20260101T000000Z;"], "20260101T000000Z"],
  ["no final semicolon, no spaces", ["v=STSv1;id=a1"], "a1"],
  ["further fields", ["v=STSv1; x=y; id=a1; z=;"], "a1"],
  ["texts of others beside it", ["v=spf1 -all", "v=STSv1; id=a1"], "a1"],
  ["two records", ["v=STSv1; id=a1", "v=STSv1; id=a2"], null],
  ["another version", ["v=STSv12; id=a1"], null],
  ["no id", ["v=STSv1;"], null],
  ["an id that is too long", [`v=STSv1; id=${"a".repeat(33)}`], null],
  ["an id of other characters", ["v=STSv1; id=a-1"], null],
  ["the version not first", ["id=a1; v=STSv1"], null],
  ["none", [], null],
])("the record that announces a policy: %s", (_what, records, id) => {
  expect(announcedId(records)).toBe(id);
});

const policy = (over: string[], without = ""): string =>
  ["version: STSv1", "mode: enforce", "mx: Mail.x.test", "mx: *.mx.x.test", "max_age: 604800", ...over]
    .filter((line) => without === "" || !line.startsWith(without))
    .join("\r\n");

test("a policy is read: unknown fields are passed over, of one that stands twice the first counts", () => {
  const read = { mode: "enforce", mx: ["mail.x.test", "*.mx.x.test"], maxAgeSeconds: 604_800 };
  expect(readPolicy(policy([]))).toEqual({ ok: true, value: read });
  expect(readPolicy(policy(["mode: none", "future: yes", "", "?"]))).toEqual({ ok: true, value: read });
  expect(readPolicy(policy([]).replaceAll("\r\n", "\n").replaceAll(": ", ":"))).toEqual({
    ok: true,
    value: read,
  });
  expect(readPolicy("version: STSv1\nmode: none\nmax_age: 86400\n")).toMatchObject({ ok: true });
});

test("a policy names as many hosts as 16 KB hold, each once", () => {
  const many = Array.from({ length: 900 }, (_, i) => `mx: m${i}.x.test`);
  const read = readPolicy(policy([...many, "mx: M1.x.test."]));
  expect(read.ok && read.value.mx.length).toBe(902);
});

test("a policy lives five minutes at least, so that its end is not a fetch for each mail", () => {
  for (const [age, kept] of [
    [0, 300],
    [300, 300],
    [301, 301],
  ])
    expect(readPolicy(policy([`max_age: ${age}`], "max_age: 6"))).toMatchObject({
      value: { maxAgeSeconds: kept },
    });
});

test("a policy lives ninety days at most", () => {
  expect(readPolicy(policy(["max_age: 9999999999"], "max_age: 6"))).toMatchObject({
    value: { maxAgeSeconds: 7_776_000 },
  });
});

test.each<[string, string]>([
  ["no version", policy([], "version")],
  ["another version", policy(["version: STSv2"], "version: STSv1")],
  ["no mode", policy([], "mode")],
  ["an unknown mode", policy(["mode: strict"], "mode: enforce")],
  ["no max_age", policy([], "max_age")],
  ["a max_age that is no number", policy(["max_age: -1"], "max_age: 6")],
  ["no mx", policy([], "mx")],
  ["a wildcard in the middle", policy(["mx: mx.*.x.test"])],
  ["an mx with spaces", policy(["mx: a b"])],
  ["mx of more than 16 KB", policy(Array.from({ length: 1_200 }, (_, i) => `mx: m${i}.hosts.x.test`))],
  ["an mx longer than a name", policy([`mx: ${"a.".repeat(127)}test`])],
  ["a web page", "<!doctype html><title>Not found</title>"],
  ["nothing", ""],
])("a policy with %s is none", (_what, text) => {
  expect(readPolicy(text).ok).toBe(false);
});

test.each([
  ["mail.x.test", "mail.x.test", true],
  ["mail.x.test", "other.x.test", false],
  ["*.x.test", "mail.x.test", true],
  ["*.x.test", "x.test", false],
  ["*.x.test", "a.mail.x.test", false],
  ["*.x.test", "mail.y.test", false],
  ["*.test", "x.test", true],
])("the pattern %s and the host %s: %s", (pattern, host, named) => {
  expect(namesHost({ mx: [pattern] }, host)).toBe(named);
});

const spaces = " ".repeat(32_000);
test.each<[string, () => unknown]>([
  ["a field of spaces", () => readPolicy(`mx:${spaces}a${spaces}b`)],
  ["a field that a line separator breaks", () => readPolicy(`mx:${spaces}\u2028${spaces}`)],
  ["a field without a colon", () => readPolicy(`mx${spaces}${spaces}`)],
  ["thousands of fields", () => readPolicy("mx: a\n".repeat(10_000))],
  ["a name of many labels", () => readPolicy(`mx: ${"a.".repeat(32_000)}!`)],
  ["a name of one label", () => readPolicy(`mx: ${"a".repeat(64_000)}`)],
  ["a record of spaces", () => announcedId([`v=STSv1; id=${spaces}a${spaces}b`])],
  ["a record of semicolons", () => announcedId([`v=STSv1${";".repeat(64_000)}`])],
])("a text of 64 KB, %s, is read in less than 20 ms", (_what, read) => {
  const enough = here(20);
  expect(leastCpuMs(enough, read)).toBeLessThan(enough);
});
