// Delivery by what the DNS says, over the wire: a scripted name server, a scripted receiver, the real resolver between.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createResolver } from "../../src/dns/resolve.ts";
import { silentLog } from "../../src/log.ts";
import { ManualClock } from "../support/clock.ts";
import { startDnsServer } from "../support/dns-server.ts";
import type { DnsServer, Failure } from "../support/dns-server.ts";
import { idleClock } from "../support/idle-clock.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver } from "../support/smtp-receiver.ts";
import { impatient, rig } from "./rig.ts";
import type { Rig } from "./rig.ts";

let dns: DnsServer;
let receiver: Receiver;
let made: Rig;
let stopResolver: () => void;

beforeEach(async () => {
  dns = await startDnsServer({ "mail.test": { A: ["127.0.0.1"] } });
  receiver = await startReceiver();
  // Nothing is remembered, so that what a test changes counts at once.
  const { uncached } = createResolver({
    servers: [dns.server],
    timeoutMs: 200,
    tries: 1,
    clock: idleClock,
    log: silentLog,
  });
  stopResolver = uncached.stop;
  made = rig({ port: receiver.port, outbound: { timeouts: impatient }, deps: { resolver: uncached } });
});
afterEach(async () => {
  await made.delivery.stop();
  stopResolver();
  await receiver.stop();
  await dns.stop();
});

const failures: Failure[] = [
  "servfail",
  "refused",
  "timeout",
  "truncated_closed",
  "malformed",
  "compression_loop",
];

test.each(failures)(
  "where the MX look-up ends in %s the mail is deferred, and delivered once it is answered",
  async (how) => {
    dns.set("x.test", "MX", ["10 mail.test"]);
    dns.set("x.test", "A", ["127.0.0.1"]);
    dns.fail("x.test", how);
    expect(await made.send("a@x.test")).toMatchObject({
      kind: "deferred",
      reply: { code: 451, status: "4.4.3" },
      classification: "dns_failure",
    });
    expect(receiver.connections).toBe(0);
    dns.fail("x.test", null);
    expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered" });
  },
);

test.each(failures)("where the addresses of the only MX end in %s the mail is deferred", async (how) => {
  dns.set("x.test", "MX", ["10 mail.test"]);
  dns.fail("mail.test", how);
  expect(await made.send("a@x.test")).toMatchObject({
    kind: "deferred",
    reply: { code: 451, status: "4.4.3" },
    classification: "dns_failure",
  });
  dns.fail("mail.test", null);
  expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test("a domain with an address and no MX is its own mail host; one with neither bounces", async () => {
  dns.set("bare.test", "A", ["127.0.0.1"]);
  dns.set("text.test", "TXT", ["v=spf1 -all"]);
  expect(await made.send("a@bare.test")).toMatchObject({ kind: "delivered", trace: { host: "bare.test" } });
  expect(await made.send("a@text.test")).toMatchObject({
    kind: "bounced",
    reply: { code: 550, status: "5.4.4" },
    classification: "routing_error",
  });
  expect(receiver.mails).toHaveLength(1);
});

test("an alias of the domain and an alias of its MX are followed", async () => {
  dns.set("alias.test", "CNAME", ["real.test"]);
  dns.set("real.test", "MX", ["10 mx.real.test"]);
  dns.set("mx.real.test", "CNAME", ["mail.test"]);
  expect(await made.send("a@alias.test")).toMatchObject({
    kind: "delivered",
    trace: { host: "mx.real.test", address: "127.0.0.1" },
  });
  expect(receiver.mails[0]?.rcptTo).toEqual(["a@alias.test"]);
});

test.each(["loop", "chain of 20"])(
  "aliases in a %s defer the mail, at the domain as at its MX",
  async (what) => {
    if (what === "loop") {
      dns.set("c0.test", "CNAME", ["c1.test"]);
      dns.set("c1.test", "CNAME", ["c0.test"]);
    } else for (let i = 0; i < 20; i++) dns.set(`c${i}.test`, "CNAME", [`c${i + 1}.test`]);
    dns.set("x.test", "MX", ["10 c0.test"]);
    for (const to of ["a@c0.test", "a@x.test"])
      expect(await made.send(to)).toMatchObject({ kind: "deferred", classification: "dns_failure" });
    expect(dns.queries.length).toBeLessThan(50);
  },
);

test.each([
  "192.0.2.1.",
  "127.0.0.1",
  "mx .x.test",
  "mx\\0.x.test",
  "xn--com-0da.test",
  `${"abcdefghi.".repeat(24)}test`,
  "bücher.test",
])(
  "the MX %j leads nowhere: the mail bounces without a connection, and another MX takes it",
  async (target) => {
    dns.set("x.test", "MX", [`10 ${target.replace("\\0", "\0")}`]);
    const outcome = await made.send("a@x.test");
    expect(outcome.kind).toBe("bounced");
    expect(outcome).toMatchObject({ reply: { code: 550, status: "5.4.4" }, classification: "routing_error" });
    expect(outcome.reply.text).not.toMatch(/\p{Cc}/u);
    expect(receiver.connections).toBe(0);
    dns.set("x.test", "MX", [`10 ${target.replace("\\0", "\0")}`, "20 mail.test"]);
    expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered" });
  },
);

test("an MX with an underscore in its name is dialled", async () => {
  dns.set("x.test", "MX", ["10 mx_1.x.test"]);
  dns.set("mx_1.x.test", "A", ["127.0.0.1"]);
  expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mx_1.x.test" } });
});

test("of one MX with 200 dead addresses five are dialled", async () => {
  dns.set("x.test", "MX", ["10 many.test"]);
  dns.set(
    "many.test",
    "A",
    Array.from({ length: 200 }, (_, i) => `127.0.1.${i + 1}`),
  );
  const outcome = await made.send("a@x.test");
  expect(outcome).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.4.1" } });
  const dialled = outcome.trace.dialogue.filter(({ text }) => text.startsWith("(connect to"));
  expect(dialled).toHaveLength(5);
});

test("of 1,000 MX five are dialled, and any that lives will do", async () => {
  const hosts = Array.from({ length: 1000 }, (_, i) => `mx${i}.many.test`);
  dns.set(
    "x.test",
    "MX",
    hosts.map((host) => `10 ${host}`),
  );
  for (const [i, host] of hosts.entries()) dns.set(host, "A", [`127.0.${1 + (i % 200)}.77`]);
  const dead = await made.send("a@x.test");
  expect(dead.kind).toBe("deferred");
  expect(dead.trace.dialogue.filter(({ text }) => text.startsWith("(connect to"))).toHaveLength(5);
  expect(dead.trace.mx).toHaveLength(32);
  for (const host of hosts) dns.set(host, "A", ["127.0.0.1"]);
  expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test.each([
  ["0", 0, 0],
  ["5 seconds", 5, 5_000],
  ["a year", 31_536_000, 3_600_000],
])(
  "a changed MX with a TTL of %s counts at the attempt after that, a year being an hour",
  async (_what, ttl, ms) => {
    const clock = new ManualClock();
    const resolver = createResolver({
      servers: [dns.server],
      timeoutMs: 200,
      tries: 1,
      clock,
      log: silentLog,
    });
    const { send } = rig({ port: receiver.port, clock, deps: { resolver } });
    dns.set("x.test", "MX", ["10 old.test"], ttl);
    dns.set("old.test", "A", ["127.0.0.99"]);
    expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
    dns.set("x.test", "MX", ["10 mail.test"], ttl);
    await clock.advance(ms);
    expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mail.test" } });
    resolver.stop();
  },
);
