// Which MX is this host itself (RFC 5321 §5.1): by name, by address, and by what our own name resolves to.
import { afterEach, expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver } from "../support/smtp-receiver.ts";
import { oneHost, rig, zoneResolver } from "./rig.ts";
import type { Rig, RigOptions, Zone } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function receive(address = "127.0.0.1"): Promise<Receiver> {
  const receiver = await startReceiver({ address });
  open.push(() => receiver.stop());
  return receiver;
}

/** This program listens on the port that is dialled, unless `deps` says otherwise. */
function start(options: RigOptions): Rig {
  const made = rig({ ...options, deps: { mailPorts: [options.port], ...options.deps } });
  open.push(() => made.delivery.stop());
  return made;
}

const loop = {
  kind: "bounced",
  source: "local",
  reply: { code: 550, status: "5.4.6" },
  classification: "routing_error",
};

test("an MX of another name at an address that our host name resolves to is us, though no interface has it", async () => {
  const receiver = await receive("127.0.0.61");
  // Where the MX is a CNAME to our name, the resolver gives the same addresses.
  const zone: Zone = {
    "x.test": { mx: ["10 alias.x.test"] },
    "alias.x.test": { a: ["127.0.0.61"] },
    "mail.sender.test": { a: ["127.0.0.60", "127.0.0.61"] },
  };
  const { send } = start({ port: receiver.port, zone });
  expect(await send("a@x.test")).toMatchObject(loop);
  expect(receiver.connections).toBe(0);
});

test("the same of an IPv6 address", async () => {
  const zone: Zone = {
    "x.test": { mx: ["10 alias.x.test"] },
    "alias.x.test": { aaaa: ["2001:db8::61"] },
    "mail.sender.test": { a: ["192.0.2.1"], aaaa: ["2001:db8::61"] },
  };
  const { send } = start({ port: 9, zone, outbound: { allowNetworks: ["2001:db8::/32"] } });
  expect(await send("a@x.test")).toMatchObject(loop);
});

test("at a port that we do not listen on, an address that our host name resolves to is another server", async () => {
  const receiver = await receive();
  const zone: Zone = { ...oneHost, "mail.sender.test": { a: ["127.0.0.1"] } };
  const { send } = start({ port: receiver.port, zone, deps: { mailPorts: [receiver.port + 1, 25] } });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test("port 25 of an address that our host name resolves to is ours at any port that we listen on: a router may lead it there", async () => {
  const zone: Zone = { ...oneHost, "mail.sender.test": { a: ["127.0.0.1"] } };
  const { send } = start({ port: 25, zone, deps: { mailPorts: [8025] } });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject(loop);
  expect(outcome.trace.dialogue).toEqual([]);
});

test("a smart host is the operator's word, even at an address of our own name", async () => {
  const receiver = await receive();
  const zone: Zone = { ...oneHost, "mail.sender.test": { a: ["127.0.0.1"] } };
  const smartHost = {
    host: "mail.test",
    port: receiver.port,
    tls: "opportunistic" as const,
    user: null,
    password: null,
    allowUnverifiedPassword: false,
  };
  const { send } = start({ port: receiver.port, zone, outbound: { smartHost } });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test("where our own name cannot be looked up, mail goes on, and five minutes or a retry later the answer counts", async () => {
  const receiver = await receive();
  const clock = new ManualClock();
  const zone: Zone = { ...oneHost, "mail.sender.test": "servfail" };
  const { send } = start({ port: receiver.port, zone, clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  zone["mail.sender.test"] = { a: ["127.0.0.1"] };
  await clock.advance(30_000);
  await send("a@x.test");
  expect(await send("a@x.test")).toMatchObject(loop);
  zone["mail.sender.test"] = { a: ["127.0.0.2"] };
  await clock.advance(300_000);
  await send("a@x.test");
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test("a name server that is silent about our own name delays the first mail for two seconds, and no other", async () => {
  const receiver = await receive();
  const clock = new ManualClock();
  const asked: string[] = [];
  const resolver = zoneResolver(oneHost);
  const silent = {
    ...resolver,
    a: (name: string) =>
      name === "mail.sender.test"
        ? (asked.push(name), new Promise<never>(() => undefined))
        : resolver.a(name),
  };
  const { send } = start({ port: receiver.port, clock, deps: { resolver: silent } });
  const first = send("a@x.test");
  await clock.advance(2_000);
  expect(await first).toMatchObject({ kind: "delivered" });
  expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  expect(asked).toHaveLength(1);
});

test("a look-up of our own name that throws delays no mail, the first or a later one, and is tried again", async () => {
  const receiver = await receive();
  const clock = new ManualClock();
  const zone: Zone = { ...oneHost };
  const resolver = zoneResolver(zone);
  let broken = true;
  const failing = {
    ...resolver,
    a: (name: string) =>
      broken && name === "mail.sender.test" ? Promise.reject(new Error("no resolver")) : resolver.a(name),
  };
  const { send } = start({ port: receiver.port, clock, deps: { resolver: failing } });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  await clock.advance(30_000);
  expect(await send("c@x.test")).toMatchObject({ kind: "delivered" }); // an unhandled rejection fails the run
  await clock.advance(30_000);
  broken = false;
  zone["mail.sender.test"] = { a: ["127.0.0.1"] };
  await send("d@x.test");
  expect(await send("e@x.test")).toMatchObject(loop);
});

test("a first look-up of our own name that never ends is given up, and another one counts", async () => {
  const receiver = await receive();
  const clock = new ManualClock();
  const resolver = zoneResolver({ ...oneHost, "mail.sender.test": { a: ["127.0.0.1"] } });
  let silent = true;
  const stuck = {
    ...resolver,
    a: (name: string) =>
      silent && name === "mail.sender.test" ? new Promise<never>(() => undefined) : resolver.a(name),
  };
  const { send } = start({ port: receiver.port, clock, deps: { resolver: stuck } });
  const first = send("a@x.test");
  await clock.advance(2_000);
  expect(await first).toMatchObject({ kind: "delivered" });
  silent = false;
  await clock.advance(30_000);
  await send("b@x.test");
  expect(await send("c@x.test")).toMatchObject(loop);
});
