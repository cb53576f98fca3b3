// The resolver against a DNS server that behaves and misbehaves on the wire.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { createResolver } from "../../src/dns/resolve.ts";
import { maxRecords } from "../../src/dns/message.ts";
import type { CachingResolver } from "../../src/dns/resolve.ts";
import { maxMxRecords } from "../../src/dns/resolver.ts";
import { silentLog } from "../../src/log.ts";
import { ManualClock } from "../support/clock.ts";
import { startDnsServer } from "../support/dns-server.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { idleClock } from "../support/idle-clock.ts";

let dns: DnsServer;
let resolver: CachingResolver;
const others: (() => unknown)[] = [];

const resolverOf = (
  servers: string[],
  tries = 1,
  clock: Clock = idleClock,
  timeoutMs = 400,
): CachingResolver => {
  const made = createResolver({ servers, timeoutMs, tries, clock, log: silentLog });
  others.push(() => made.stop());
  return made;
};

beforeEach(async () => {
  dns = await startDnsServer({
    "a.test": { MX: ["20 mx2.a.test", "10 MX1.a.test"], TXT: ["v=spf1 -all", "x".repeat(700)] },
    "mx1.a.test": { A: ["192.0.2.1"], AAAA: ["2001:db8::1"] },
    "null.test": { MX: ["0 ."] },
    "alias.test": { CNAME: ["mx1.a.test"] },
    "1.2.0.192.in-addr.arpa": { PTR: ["mail.a.test"] },
    [`1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`]: { PTR: ["six.a.test"] },
  });
  resolver = resolverOf([dns.server]);
});

afterEach(async () => {
  for (const end of others.splice(0)) end();
  await dns.stop();
});

test("finds TLSA records with their data as bytes, and says what the configured server vouches for", async () => {
  const hash = "ab".repeat(32);
  dns.set("_25._tcp.mx1.a.test", "TLSA", [`3 1 1 ${hash}`, "2 0 0 00ff"]);
  dns.authenticate(true);
  expect(await resolver.tlsa("_25._tcp.MX1.a.test")).toEqual({
    kind: "found",
    ttlSeconds: 0,
    authenticated: true,
    records: [
      { usage: 3, selector: 1, matching: 1, data: hash },
      { usage: 2, selector: 0, matching: 0, data: "00ff" },
    ],
  });
  expect(await resolver.a("alias.test")).toMatchObject({ authenticated: true, canonical: "mx1.a.test" });
  expect(await resolver.tlsa("_25._tcp.none.test")).toEqual({ kind: "nxdomain" });
  dns.fail("_25._tcp.mx1.a.test", "servfail");
  expect(await resolverOf([dns.server]).tlsa("_25._tcp.mx1.a.test")).toMatchObject({ kind: "failed" });
});

test("finds records of every type, names in lower case without the final dot", async () => {
  expect(await resolver.mx("A.Test.")).toMatchObject({
    kind: "found",
    authenticated: false,
    records: [
      { preference: 20, exchange: "mx2.a.test" },
      { preference: 10, exchange: "mx1.a.test" },
    ],
  });
  expect(await resolver.a("mx1.a.test")).toMatchObject({ records: ["192.0.2.1"] });
  expect(await resolver.aaaa("mx1.a.test")).toMatchObject({ records: ["2001:db8::1"] });
  expect(await resolver.cname("alias.test")).toMatchObject({ records: ["mx1.a.test"] });
  expect(await resolver.ptr("192.0.2.1")).toMatchObject({ records: ["mail.a.test"] });
  expect(await resolver.ptr("::ffff:192.0.2.1")).toMatchObject({ records: ["mail.a.test"] });
  expect(await resolver.ptr("2001:db8::1")).toMatchObject({ records: ["six.a.test"] });
  expect(await resolver.mx("null.test")).toMatchObject({ records: [{ preference: 0, exchange: "" }] });
});

test("joins the strings of a long TXT record", async () => {
  expect(await resolver.txt("a.test")).toMatchObject({ records: ["v=spf1 -all", "x".repeat(700)] });
});

test("tells no such name from no such data", async () => {
  expect(await resolver.a("missing.a.test")).toEqual({ kind: "nxdomain" });
  expect(await resolver.a("a.test")).toEqual({ kind: "nodata" });
});

test.each([
  "servfail",
  "refused",
  "timeout",
  "malformed",
  "compression_loop",
  "truncated_closed",
  "formerr",
] as const)("%s is a failure, never a negative answer", async (how) => {
  dns.fail("a.test", how);
  expect(await resolver.mx("a.test")).toMatchObject({
    kind: "failed",
    why: expect.stringContaining(dns.server),
  });
});

test("the reason of a failure names what the server said", async () => {
  dns.fail("a.test", "servfail");
  expect(await resolver.mx("a.test")).toEqual({ kind: "failed", why: `${dns.server}: answered SERVFAIL` });
  dns.fail("a.test", "timeout");
  expect(await resolver.uncached.mx("a.test")).toEqual({
    kind: "failed",
    why: `${dns.server}: no answer within 400 ms`,
  });
});

test("a server that knows no EDNS is asked without it", async () => {
  dns.fail("a.test", "formerr");
  await resolver.mx("a.test");
  expect(dns.queries).toHaveLength(2);
});

test("an answer too long for UDP is fetched by TCP", async () => {
  dns.fail("mx1.a.test", "truncated");
  expect(await resolver.a("mx1.a.test")).toMatchObject({ records: ["192.0.2.1"] });
  expect(dns.queries.map((query) => query.over)).toEqual(["udp", "tcp"]);
  dns.set(
    "many.test",
    "TXT",
    Array.from({ length: 1000 }, (_, i) => `a rather long text, number ${i}`),
  );
  const answer = await resolverOf([dns.server], 1, idleClock, 5000).txt("many.test");
  expect(answer.kind === "found" && answer.records.length).toBe(maxRecords);
});

test("of a thousand MX records those of lowest preference are kept, as far as the answer is read", async () => {
  const many = Array.from({ length: 1000 }, (_, i) => `${2000 - i} a-rather-long-host-name-${i}.many.test`);
  dns.set("many.test", "MX", many);
  const answer = await resolverOf([dns.server], 1, idleClock, 5000).mx("many.test");
  expect(answer).toMatchObject({ kind: "found" });
  const preferences = answer.kind === "found" ? answer.records.map(({ preference }) => preference) : [];
  expect(preferences).toEqual(Array.from({ length: maxMxRecords }, (_, i) => 2001 - maxRecords + i));
});

test("long answers are asked for one after the other", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock, 60_000);
  const names = ["one.test", "two.test", "three.test"];
  for (const name of names) {
    dns.set(name, "A", ["192.0.2.1"]);
    dns.fail(name, "truncated");
  }
  const over = (way: string) => dns.queries.filter((query) => query.over === way).length;
  const asking = Promise.all(names.map((name) => patient.a(name)));
  while (over("udp") < names.length || over("tcp") < 1) await clock.advance(0);
  for (let i = 0; i < 20; i++) await clock.advance(0);
  expect(over("tcp")).toBe(1);
  for (let i = 0; i < 5; i++) await clock.advance(8);
  expect((await asking).every(({ kind }) => kind === "found")).toBe(true);
});

test("stopping ends what waits to be asked for by TCP", async () => {
  const clock = new ManualClock();
  const stopping = resolverOf([dns.server], 1, clock, 60_000);
  const names = ["one.test", "two.test", "three.test"];
  for (const name of names) {
    dns.set(name, "A", ["192.0.2.1"]);
    dns.fail(name, "truncated");
  }
  let answered = 0;
  for (const name of names) void stopping.a(name).then(() => answered++);
  const over = (way: string) => dns.queries.filter((query) => query.over === way).length;
  while (over("udp") < names.length || over("tcp") < 1) await clock.advance(0);
  for (let i = 0; i < 20; i++) await clock.advance(0);
  stopping.stop();
  for (let i = 0; i < 20; i++) await clock.advance(0);
  expect(answered).toBe(names.length);
});

test.each(["wrong_id", "wrong_question", "other_case"] as const)(
  "a forged answer (%s) is ignored and the right one taken",
  async (how) => {
    dns.fail("mx1.a.test", how);
    expect(await resolver.a("mx1.a.test")).toMatchObject({ records: ["192.0.2.1"] });
  },
);

test("a server that loses the case of names is found out by two questions, and taken as it is from then on", async () => {
  // So many letters that chance never asks for all of them in lower case.
  const name = `${"letters".repeat(8)}.test`;
  dns.set(name, "A", ["192.0.2.1"]);
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock);
  const asked = async () => {
    const asking = patient.uncached.a(name);
    for (let i = 0; i < 2; i++) await clock.advance(250);
    return asking;
  };
  dns.fail(name, "lower_case");
  expect(await asked()).toMatchObject({ records: ["192.0.2.1"] });
  expect(dns.queries).toHaveLength(3);
  await patient.uncached.a(name);
  expect(dns.queries).toHaveLength(4);
  await clock.advance(3_600_000);
  expect(await asked()).toMatchObject({ records: ["192.0.2.1"] });
  expect(dns.queries, "an hour later it is seen whether it still does").toHaveLength(7);
});

test("an owner whose look-ups all hang delays no other owner's, and its own go on by and by", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock, 5000);
  for (let i = 0; i < 400; i++) dns.fail(`silent${i}.test`, "timeout");
  const hanging = Array.from({ length: 400 }, (_, i) => patient.a(`silent${i}.test`, 1));
  expect(await patient.a("mx1.a.test", 2)).toMatchObject({ records: ["192.0.2.1"] });
  const own = patient.aaaa("mx1.a.test", 1);
  for (let i = 0; i < 4; i++) await clock.advance(200);
  expect(await own).toMatchObject({ records: ["2001:db8::1"] });
  await clock.advance(10_000);
  expect((await Promise.all(hanging)).every(({ kind }) => kind === "failed")).toBe(true);
});

test("a question does not wait behind a thousand of its own account that hang, nor for those asked again", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 2, clock, 500);
  const silent = Array.from({ length: 1_000 }, (_, i) => `silent${i}.test`);
  for (const name of silent) dns.fail(name, "timeout");
  const hanging = Promise.all(silent.map((name) => patient.a(name, 1)));
  const answered = async (question: Promise<unknown>): Promise<boolean> => {
    let done = false;
    void question.then(() => (done = true));
    for (let i = 0; i < 25 && !done; i++) await clock.advance(10);
    return done;
  };
  expect(await answered(patient.a("mx1.a.test", 1))).toBe(true);
  await clock.advance(500);
  for (let i = 0; i < 5; i++) expect(await answered(patient.uncached.a("mx1.a.test", 1))).toBe(true);
  await clock.advance(20_000);
  expect((await hanging).every(({ kind }) => kind === "failed")).toBe(true);
  const again = silent.map((name) => patient.uncached.a(name, 1));
  expect(await answered(patient.aaaa("mx1.a.test", 1))).toBe(true);
  await clock.advance(20_000);
  await Promise.all(again);
});

test("a look-up that was given up for its owner's others says nothing about the name to anybody else", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock, 60_000);
  const silent = Array.from({ length: 1600 }, (_, i) => `silent${i}.test`);
  for (const name of silent) dns.fail(name, "timeout");
  const first = patient.a("silent0.test", 1);
  const others = silent.slice(1).map((name) => patient.a(name, 1));
  for (let i = 0; i < 50; i++) await clock.advance(200);
  expect(await first).toMatchObject({ why: expect.stringContaining("too many other look-ups hang") });
  dns.fail("silent0.test", null);
  dns.set("silent0.test", "A", ["192.0.2.7"]);
  expect(await patient.a("silent0.test", 2)).toMatchObject({ records: ["192.0.2.7"] });
  patient.stop();
  await Promise.all(others);
});

test("a name that an owner waits for is asked for another owner at once", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock, 5000);
  for (let i = 0; i < 300; i++) dns.fail(`silent${i}.test`, "timeout");
  const before = Array.from({ length: 300 }, (_, i) => patient.a(`silent${i}.test`, 1));
  const behind = patient.a("mx1.a.test", 1);
  expect(await patient.a("mx1.a.test", 2)).toMatchObject({ records: ["192.0.2.1"] });
  await clock.advance(20_000);
  await Promise.all([...before, behind]);
});

test("each question comes from another port", async () => {
  for (let i = 0; i < 8; i++) await resolver.uncached.a("mx1.a.test");
  expect(new Set(dns.queries.map((query) => query.fromPort)).size).toBeGreaterThan(4);
});

test("follows aliases, and tells what their end lacks", async () => {
  expect(await resolver.a("alias.test")).toMatchObject({ records: ["192.0.2.1"] });
  expect(await resolver.mx("alias.test")).toEqual({ kind: "nodata" });
  dns.set("dangling.test", "CNAME", ["nowhere.a.test"]);
  expect(await resolver.a("dangling.test")).toEqual({ kind: "nxdomain" });
});

test("aliases that form a loop, or on and on, are a failure", async () => {
  dns.set("x.test", "CNAME", ["y.test"]);
  dns.set("y.test", "CNAME", ["x.test"]);
  expect(await resolver.a("x.test")).toMatchObject({
    kind: "failed",
    why: expect.stringContaining("loop"),
  });
  dns.set("self.test", "CNAME", ["self.test"]);
  expect(await resolver.a("self.test")).toMatchObject({ kind: "failed" });
  for (let i = 0; i < 12; i++) dns.set(`c${i}.test`, "CNAME", [`c${i + 1}.test`]);
  dns.set("c12.test", "A", ["192.0.2.9"]);
  expect(await resolver.a("c0.test")).toMatchObject({
    kind: "failed",
    why: expect.stringContaining("more than 8"),
  });
  expect(await resolver.a("c4.test")).toMatchObject({ records: ["192.0.2.9"] });
});

test("another server answers for one that fails, and is asked first from then on", async () => {
  const broken = await startDnsServer();
  others.push(() => broken.stop());
  broken.fail("mx1.a.test", "servfail");
  const both = resolverOf([broken.server, dns.server]);
  expect(await both.a("mx1.a.test")).toMatchObject({ records: ["192.0.2.1"] });
  expect(await both.aaaa("mx1.a.test")).toMatchObject({ records: ["2001:db8::1"] });
  expect(broken.queries).toHaveLength(1);
});

test("asks again as often as configured", async () => {
  dns.fail("a.test", "timeout");
  expect(await resolverOf([dns.server], 3).mx("a.test")).toMatchObject({ kind: "failed" });
  expect(dns.queries).toHaveLength(3);
});

test("carries the AD bit of the server", async () => {
  dns.authenticate(true);
  expect(await resolver.a("mx1.a.test")).toMatchObject({ authenticated: true });
});

test.each([
  "",
  ".",
  "a..test",
  "x".repeat(64) + ".test",
  `${"abcdefghi.".repeat(26)}test`,
  "bücher.test",
  "a\0.test",
  "a b.test",
])("%j is not asked, and nothing is thrown", async (name) => {
  expect(await resolver.mx(name)).toMatchObject({ kind: "failed" });
  expect(await resolver.ptr(name)).toMatchObject({ kind: "failed" });
  expect(dns.queries).toEqual([]);
});

test("keeps an answer for its TTL on the clock, and no longer", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock);
  dns.set("ttl.test", "A", ["192.0.2.5"], 5);
  expect(await patient.a("ttl.test")).toMatchObject({ records: ["192.0.2.5"], ttlSeconds: 5 });
  dns.set("ttl.test", "A", ["192.0.2.6"], 5);
  clock.jump(-86_400_000); // the wall clock is none of its business
  await clock.advance(3000);
  expect(await patient.a("ttl.test")).toMatchObject({ records: ["192.0.2.5"], ttlSeconds: 2 });
  expect(await patient.uncached.a("ttl.test")).toMatchObject({ records: ["192.0.2.6"] });
  await clock.advance(2000);
  expect(await patient.a("ttl.test")).toMatchObject({ records: ["192.0.2.6"] });
});

test("a TTL of 0 is not kept, one of a year for an hour at most", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock);
  await patient.a("mx1.a.test");
  await patient.a("mx1.a.test");
  expect(dns.queries).toHaveLength(2);
  dns.set("year.test", "A", ["192.0.2.7"], 31_536_000);
  expect(await patient.a("year.test")).toMatchObject({ ttlSeconds: 3600 });
  await clock.advance(3_599_000);
  await patient.a("year.test");
  expect(dns.queries).toHaveLength(3);
  await clock.advance(1000);
  await patient.a("year.test");
  expect(dns.queries).toHaveLength(4);
});

test("an alias's shorter TTL applies to the whole answer", async () => {
  dns.set("short.test", "CNAME", ["long.test"], 7);
  dns.set("long.test", "A", ["192.0.2.7"], 600);
  expect(await resolver.a("short.test")).toMatchObject({ ttlSeconds: 7 });
});

test("a negative answer is kept for five minutes at most, a failure for half a minute", async () => {
  const clock = new ManualClock();
  const patient = resolverOf([dns.server], 1, clock);
  dns.negativeTtl(86_400);
  expect(await patient.a("new.test")).toEqual({ kind: "nxdomain" });
  dns.set("new.test", "A", ["192.0.2.8"]);
  await clock.advance(299_000);
  expect(await patient.a("new.test")).toEqual({ kind: "nxdomain" });
  await clock.advance(1000);
  expect(await patient.a("new.test")).toMatchObject({ kind: "found" });

  dns.fail("mx1.a.test", "servfail");
  expect(await patient.a("mx1.a.test")).toMatchObject({ kind: "failed" });
  dns.fail("mx1.a.test", null);
  await clock.advance(29_999);
  expect(await patient.a("mx1.a.test")).toMatchObject({ kind: "failed" });
  expect(await patient.uncached.a("mx1.a.test"), "whoever verifies asks again").toMatchObject({
    kind: "found",
  });
  await clock.advance(1);
  expect(await patient.a("mx1.a.test")).toMatchObject({ kind: "found" });
});

test("the same question is asked once at a time", async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => resolver.a("mx1.a.test")));
  expect(dns.queries).toHaveLength(1);
  expect(answers.every((answer) => answer.kind === "found")).toBe(true);
});

test("a thousand questions at once are all answered", async () => {
  for (let i = 0; i < 1000; i++) dns.set(`h${i}.bulk.test`, "A", ["192.0.2.1"]);
  const roomy = createResolver({
    servers: [dns.server],
    timeoutMs: 5000,
    tries: 2,
    clock: idleClock,
    log: silentLog,
  });
  others.push(() => roomy.stop());
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, i) => roomy.a(`h${i}.bulk.test`)));
  expect(answers.filter((answer) => answer.kind !== "found")).toEqual([]);
});

test("stopping ends what is in flight and what would follow", async () => {
  dns.fail("a.test", "timeout");
  const clock = new ManualClock();
  const stopping = resolverOf([dns.server], 2, clock);
  const asking = stopping.mx("a.test");
  await clock.advance(0);
  stopping.stop();
  expect(await asking).toMatchObject({ kind: "failed", why: expect.stringContaining("stopped") });
  expect(clock.pending).toBe(0);
  expect(await stopping.mx("a.test")).toMatchObject({ kind: "failed" });
});

test("a server that is not there is a failure", async () => {
  const gone = await startDnsServer();
  await gone.stop();
  expect(await resolverOf([gone.server]).mx("a.test")).toMatchObject({ kind: "failed" });
});

test("a server to which there is no way is a failure, and no end of the program", async () => {
  // A UDP socket may not be connected to the broadcast address unless it asks for that: connect fails, as without a route.
  expect(await resolverOf(["255.255.255.255"]).mx("a.test")).toMatchObject({
    kind: "failed",
    why: expect.stringMatching(/EACCES|ENETUNREACH/),
  });
});

test("a server that is not an address is refused at once", () => {
  expect(() => resolverOf(["dns.example"])).toThrow("dns.example");
});
