import { afterEach, expect, test } from "vitest";
import { startBlackHole } from "../support/black-hole.ts";
import { ManualClock } from "../support/clock.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver, ReceiverOptions } from "../support/smtp-receiver.ts";
import type { DnsAnswer, Resolver } from "../../src/dns/resolver.ts";
import { impatient, oneHost, rig, zoneResolver } from "./rig.ts";
import type { Rig, RigOptions, Zone } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function receive(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await startReceiver(options);
  open.push(() => receiver.stop());
  return receiver;
}

function start(options: RigOptions): Rig {
  const made = rig({ ...options, outbound: { timeouts: impatient, ...options.outbound } });
  open.push(() => made.delivery.stop());
  return made;
}

/** mx1 at 127.0.0.11 before mx2 at 127.0.0.12. */
const twoHosts: Zone = {
  "x.test": { mx: ["20 mx2.x.test", "10 mx1.x.test"] },
  "mx1.x.test": { a: ["127.0.0.11"] },
  "mx2.x.test": { a: ["127.0.0.12"] },
};

test("a first MX that refuses connections costs nothing: the second takes the mail in the same attempt", async () => {
  const second = await receive({ address: "127.0.0.12" });
  const { send } = start({ port: second.port, zone: twoHosts });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({
    kind: "delivered",
    trace: {
      host: "mx2.x.test",
      address: "127.0.0.12",
      mx: [
        { host: "mx1.x.test", preference: 10 },
        { host: "mx2.x.test", preference: 20 },
      ],
    },
  });
  expect(outcome.trace.dialogue.map((line) => line.text).join("\n")).toContain("ECONNREFUSED");
});

test("a first MX that resets the connection costs nothing: the second takes the mail in the same attempt", async () => {
  const second = await receive({ address: "127.0.0.12" });
  const first = await receive({ address: "127.0.0.11", port: second.port, stall: "banner" });
  const { send } = start({ port: second.port, zone: twoHosts, clock: new ManualClock() });
  const sending = send("a@x.test");
  await first.waitFor(() => first.open === 1);
  first.hangUp("reset");
  const outcome = await sending;
  expect(outcome).toMatchObject({ kind: "delivered", trace: { host: "mx2.x.test" } });
  expect(outcome.trace.dialogue.map((line) => line.text).join("\n")).toContain("ECONNRESET");
});

test("a first MX that swallows connections costs one message 30 s, and those after it nothing", async () => {
  const second = await receive({ address: "127.0.0.12" });
  open.push(await startBlackHole("127.0.0.11", second.port));
  const clock = new ManualClock();
  const timeouts = { ...impatient, connectMs: 30_000 };
  const { send } = start({ port: second.port, zone: twoHosts, clock, outbound: { timeouts } });
  const sending = send("a@x.test");
  await clock.advance(29_999);
  expect(second.connections).toBe(0);
  await clock.advance(1);
  expect(await sending).toMatchObject({ kind: "delivered", trace: { host: "mx2.x.test" } });
  for (const to of ["b@x.test", "c@x.test"]) {
    const { kind, trace } = await send(to);
    expect(kind).toBe("delivered");
    expect(trace.dialogue[0]?.text).toBe("(127.0.0.11 skipped: no connection 0 s ago)");
  }
});

test.each([
  ["a 554 greeting", { banner: "554 5.7.1 blocked, see https://x.test" }],
  ["a 421 greeting", { banner: "421 4.3.2 busy" }],
  ["no greeting", { stall: "banner" }],
  ["a hang-up in place of a greeting", { drop: "banner" }],
  ["a hang-up after MAIL", { drop: "mail" }],
  ["EHLO and HELO refused", { reply: { ehlo: "550 no", helo: "550 no" } }],
] as const)("the next MX is tried after %s", async (_what, options) => {
  const second = await receive({ address: "127.0.0.12" });
  await receive({ address: "127.0.0.11", port: second.port, ...options });
  const { send } = start({ port: second.port, zone: twoHosts });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mx2.x.test" } });
});

test("554 greetings everywhere defer, keep the server's words and never blame the recipient", async () => {
  const second = await receive({ address: "127.0.0.12", banner: "554 5.7.1 blocked too" });
  await receive({ address: "127.0.0.11", port: second.port, banner: "550 5.1.1 unknown user, he says" });
  const { send } = start({ port: second.port, zone: twoHosts });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({ kind: "deferred", reply: { code: 554, status: "5.7.1" } });
  const only = start({ port: second.port, zone: { ...twoHosts, "x.test": { mx: ["10 mx1.x.test"] } } });
  expect(await only.send("a@x.test")).toMatchObject({ kind: "deferred", classification: "receiver_error" });
});

test("a greeting's refusal says more than the silence of the host after it", async () => {
  const first = await receive({ address: "127.0.0.11", banner: "554 5.7.1 blocked" });
  const { send } = start({ port: first.port, zone: twoHosts });
  expect(await send("a@x.test")).toMatchObject({ reply: { code: 554 }, trace: { host: "mx1.x.test" } });
});

test("an IPv6 address without a route does not keep mail from the host's IPv4 address", async () => {
  const receiver = await receive({ address: "127.0.0.11" });
  const zone: Zone = {
    "x.test": { mx: ["10 mx.x.test"] },
    "mx.x.test": { aaaa: ["2001:db8::1", "2001:db8::2", "2001:db8::3"], a: ["127.0.0.11"] },
  };
  const { send } = start({
    port: receiver.port,
    zone,
    outbound: { allowNetworks: ["127.0.0.0/8", "2001:db8::/32"] },
  });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { address: "127.0.0.11" } });
});

test("at most five addresses are tried", async () => {
  const last = await receive({ address: "127.0.0.36" });
  const hosts = [31, 32, 33, 34, 35, 36];
  const zone: Zone = {
    "x.test": { mx: hosts.map((n) => `${n} mx${n}.x.test`) },
    ...Object.fromEntries(hosts.map((n) => [`mx${n}.x.test`, { a: [`127.0.0.${n}`] }])),
  };
  const { send } = start({ port: last.port, zone, deps: { random: () => 0 } });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({
    kind: "deferred",
    reply: { code: 421, status: "4.4.1" },
    classification: "connection_failed",
  });
  expect(outcome.reply.text).toMatch(
    /^\[local\] no connection to mx35\.x\.test \[127\.0\.0\.35\]:\d+: .*ECONNREFUSED/,
  );
  expect(last.connections).toBe(0);
});

test("of more than five hosts the last place is drawn, so that none is left out for ever", async () => {
  const last = await receive({ address: "127.0.0.37" });
  const hosts = [31, 32, 33, 34, 35, 36, 37];
  const zone: Zone = {
    "x.test": { mx: hosts.map((n) => `${n} mx${n}.x.test`) },
    ...Object.fromEntries(hosts.slice(0, 6).map((n) => [`mx${n}.x.test`, "servfail" as const])),
    "mx37.x.test": { a: ["127.0.0.37"] },
  };
  let drawn = 0;
  const { send } = start({ port: last.port, zone, deps: { random: () => drawn } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", classification: "dns_failure" });
  drawn = 0.99;
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mx37.x.test" } });
});

test.each([
  ["without an address", {}],
  ["with a forbidden address alone", { a: ["10.0.0.1"] }],
])("five hosts %s defer what a host that was not looked up may take", async (_what, entry) => {
  const hosts = [31, 32, 33, 34, 35, 36];
  const zoneOf = (count: number): Zone => ({
    "x.test": { mx: hosts.slice(0, count).map((n) => `${n} mx${n}.x.test`) },
    ...Object.fromEntries(hosts.map((n) => [`mx${n}.x.test`, entry])),
  });
  const deps = { random: () => 0 };
  expect(await start({ port: 25, zone: zoneOf(5), deps }).send("a@x.test")).toMatchObject({
    kind: "bounced",
  });
  const unsure = await start({ port: 25, zone: zoneOf(6), deps }).send("a@x.test");
  expect(unsure).toMatchObject({ kind: "deferred", reply: { code: 451, status: "4.4.4" } });
  expect(unsure.reply.text).toContain("5 of 6 mail hosts");
});

test("of more than five hosts none after this one is used, whatever is drawn", async () => {
  const after = await receive({ address: "127.0.0.12" });
  const hosts = [31, 32, 33, 34, 35];
  const zone: Zone = {
    "x.test": { mx: [...hosts.map((n) => `${n} mx${n}.x.test`), "40 mail.sender.test", "50 mx2.x.test"] },
    ...Object.fromEntries(hosts.map((n) => [`mx${n}.x.test`, {}])),
    "mx2.x.test": { a: ["127.0.0.12"] },
  };
  for (const drawn of [0, 0.5, 0.99]) {
    const { send } = start({ port: after.port, zone, deps: { random: () => drawn } });
    expect((await send("a@x.test")).kind).not.toBe("delivered");
  }
  expect(after.connections).toBe(0);
});

/** A domain with 3,000 mail hosts whose name server says nothing; `asked` are the hosts that were looked up. */
function silentZone(preference: (i: number) => number): { resolver: Resolver; asked: Set<string> } {
  const asked = new Set<string>();
  const silence = (host: string): Promise<never> => {
    asked.add(host);
    return new Promise(() => undefined);
  };
  const records = Array.from({ length: 3000 }, (_, i) => `${preference(i)} mx${i}.silent.test`);
  const resolver = { ...zoneResolver({ "x.test": { mx: records } }), a: silence, aaaa: silence };
  return { resolver, asked };
}

test.each([
  ["of one preference", () => 10],
  ["each of its own preference", (i: number) => i],
])(
  "an attempt at 3,000 MX %s on a silent server looks up five and ends in half a minute",
  async (_what, preference) => {
    const { resolver, asked } = silentZone(preference);
    const clock = new ManualClock();
    const { send } = start({ port: 25, clock, deps: { resolver } });
    const outcome = send("a@x.test");
    await clock.advance(30_000);
    const ended = await outcome;
    expect(ended).toMatchObject({ kind: "deferred", reply: { code: 451, status: "4.4.3" } });
    expect(ended.trace.mx).toHaveLength(32);
    expect(asked.size).toBe(5);
    expect(clock.pending).toBe(0);
  },
);

test.each([
  ["of one preference", () => 10],
  ["each of its own preference", (i: number) => i],
])(
  "which families 3,000 MX %s on a silent server have is asked of five, in half a minute",
  async (_what, preference) => {
    const { resolver, asked } = silentZone(preference);
    const clock = new ManualClock();
    const { delivery } = start({ port: 25, clock, deps: { resolver } });
    const route = await delivery.route("x.test", 1);
    if (route.kind !== "hosts") throw new Error("no hosts");
    const families = delivery.families(route, [4], 1);
    await clock.advance(30_000);
    expect(await families, "which cannot be told").toEqual([4]);
    expect(asked.size).toBe(5);
    expect(clock.pending).toBe(0);
  },
);

test("one mail host whose name server is slow is waited for longer than one of several", async () => {
  const receiver = await receive({});
  const clock = new ManualClock();
  const slow = (host: string): Promise<DnsAnswer<string>> =>
    new Promise((resolve) => {
      const found: DnsAnswer<string> = {
        kind: "found",
        records: ["127.0.0.1"],
        ttlSeconds: 0,
        authenticated: false,
      };
      if (host === "mail.test") clock.after(20_000, () => resolve(found));
      else resolve({ kind: "nodata" });
    });
  const resolver = { ...zoneResolver(oneHost), a: slow };
  const { send } = start({ port: receiver.port, clock, deps: { resolver } });
  const outcome = send("a@x.test");
  await clock.advance(20_000);
  expect(await outcome).toMatchObject({ kind: "delivered" });
});

test("an address without connection is left alone by other messages for a minute, then tried again", async () => {
  const clock = new ManualClock();
  const probe = await receive({ address: "127.0.0.12" });
  const { send } = start({ port: probe.port, zone: twoHosts, clock });
  await send("a@x.test");
  const first = await receive({ address: "127.0.0.11", port: probe.port });
  await clock.advance(59_000);
  const skipped = await send("b@x.test");
  expect(skipped.trace.dialogue.map((line) => line.text)).toContain(
    "(127.0.0.11 skipped: no connection 59 s ago)",
  );
  expect(skipped).toMatchObject({ kind: "delivered", trace: { host: "mx2.x.test" } });
  await clock.advance(1_000);
  expect(await send("c@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mx1.x.test" } });
  expect(first.mails.map((mail) => mail.rcptTo[0])).toEqual(["c@x.test"]);
});

test("with every address dead a message is deferred at once, without a connection", async () => {
  const receiver = await receive({});
  const { port } = receiver;
  await receiver.stop();
  const { send } = start({ port });
  await send("a@x.test");
  const again = await receive({ port });
  expect(await send("b@x.test")).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.4.1" } });
  expect(again.connections).toBe(0);
});

test.each([
  ["127.0.0.1", "loopback"],
  ["10.1.2.3", "private"],
  ["169.254.169.254", "link-local and metadata"],
  ["0.0.0.0", "unspecified"],
])("an MX at %s (%s) is not dialled unless that network is allowed", async (address) => {
  const receiver = await receive({});
  const zone: Zone = { "x.test": { mx: ["10 mx.x.test"] }, "mx.x.test": { a: [address] } };
  const { send } = start({ port: receiver.port, zone, outbound: { allowNetworks: ["192.168.0.0/16"] } });
  expect(await send("a@x.test")).toMatchObject({
    kind: "bounced",
    source: "local",
    reply: { code: 550, status: "5.4.6" },
    classification: "routing_error",
  });
  expect(receiver.connections).toBe(0);
});

test("a forbidden address is passed over for a public one, and a failed look-up defers what would bounce", async () => {
  const receiver = await receive({ address: "127.0.0.12" });
  const zone: Zone = { ...twoHosts, "mx1.x.test": { a: ["10.0.0.1"] } };
  const { send } = start({ port: receiver.port, zone });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { host: "mx2.x.test" } });
  const unsure = start({ port: receiver.port, zone: { ...zone, "mx2.x.test": "servfail" } });
  expect(await unsure.send("a@x.test")).toMatchObject({
    kind: "deferred",
    reply: { code: 451, status: "4.4.3" },
    classification: "dns_failure",
  });
});

test("an MX that is us ends the list there: hosts before it are used, it and those after it are not", async () => {
  const receiver = await receive({ address: "127.0.0.12" });
  const deps = { isOurs: (address: string) => address === "127.0.0.12" };
  const { send } = start({ port: receiver.port, zone: twoHosts, deps });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { status: "4.4.1" } });
  const zone: Zone = { ...twoHosts, "x.test": { mx: ["10 mx2.x.test", "20 mx1.x.test"] } };
  const first = start({ port: receiver.port, zone, deps });
  expect(await first.send("a@x.test")).toMatchObject({
    kind: "bounced",
    source: "local",
    reply: { code: 550, status: "5.4.6" },
    classification: "routing_error",
  });
  const named = start({ port: receiver.port, zone: { "x.test": { mx: ["10 mail.sender.test"] } } });
  expect(await named.send("a@x.test")).toMatchObject({ kind: "bounced", reply: { status: "5.4.6" } });
  expect(receiver.connections).toBe(0);
});

test("two MX of equal preference share the mail, kept connections or not", async () => {
  const one = await receive({ address: "127.0.0.11" });
  await receive({ address: "127.0.0.12", port: one.port });
  const zone: Zone = { ...twoHosts, "x.test": { mx: ["10 mx1.x.test", "10 mx2.x.test"] } };
  const { send } = start({ port: one.port, zone });
  for (let i = 0; i < 100; i++) await send(`r${i}@x.test`);
  expect(one.mails.length).toBeGreaterThan(25);
  expect(one.mails.length).toBeLessThan(75);
  expect(one.connections).toBeLessThan(5);
});

test("mail leaves from the configured address, and only to addresses of its family", async () => {
  const receiver = await receive({ address: "127.0.0.12" });
  const zone: Zone = {
    "x.test": { mx: ["10 mx.x.test"] },
    "mx.x.test": { aaaa: ["2001:db8::1"], a: ["127.0.0.12"] },
  };
  const outbound = { source: ["127.0.0.77"], allowNetworks: ["127.0.0.0/8", "2001:db8::/32"] };
  const { send } = start({ port: receiver.port, zone, outbound });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { sendingIp: "127.0.0.77" } });
  expect(receiver.mails[0]?.from).toBe("127.0.0.77");
  const six = start({
    port: receiver.port,
    zone: { ...zone, "mx.x.test": { aaaa: ["2001:db8::1"] } },
    outbound,
  });
  expect(await six.send("a@x.test")).toMatchObject({ kind: "bounced", reply: { status: "5.4.4" } });
});

test("a smart host takes everything, without a question to the DNS and wherever it is", async () => {
  const receiver = await receive({});
  const { port } = receiver;
  const smartHost = {
    host: "127.0.0.1",
    port,
    user: null,
    password: null,
    tls: "none" as const,
    allowUnverifiedPassword: false,
  };
  const { send, delivery } = start({ port: 1, zone: {}, outbound: { smartHost, allowNetworks: [] } });
  expect(await delivery.route("nowhere.test", 1)).toMatchObject({ kind: "hosts", group: "smart-host" });
  expect(await send("a@nowhere.test")).toMatchObject({ kind: "delivered", trace: { host: "127.0.0.1" } });
});

test("an address literal in an MX is not a host", async () => {
  const receiver = await receive({});
  const { send } = start({ port: receiver.port, zone: { ...oneHost, "x.test": { mx: ["10 127.0.0.1"] } } });
  expect(await send("a@x.test")).toMatchObject({ kind: "bounced", reply: { code: 550, status: "5.4.4" } });
  expect(receiver.connections).toBe(0);
});
