// Mail of a pool leaves from the pool's address and no other, and says that address's name.
import { afterEach, expect, test } from "vitest";
import type { Family, Source } from "../../src/pools/sources.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { makeRequest, rig, zoneResolver, type Zone } from "./rig.ts";

let receivers: Receiver[] = [];
afterEach(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  receivers = [];
});

const start = async (deps: NonNullable<Parameters<typeof rig>[0]["deps"]> = {}) => {
  const receiver = await startReceiver();
  receivers.push(receiver);
  return { receiver, ...rig({ port: receiver.port, deps }) };
};
const from = (address: string, hostname: string | null = null): Source => ({ address, hostname, weight: 1 });

test("the receiver sees the pool's address and the name that goes with it; the record shows the address", async () => {
  const { receiver, send } = await start();
  const outcome = await send("a@x.test", { source: from("127.0.0.7", "out7.sender.test") });
  expect(outcome).toMatchObject({ kind: "delivered", trace: { sendingIp: "127.0.0.7" } });
  expect(receiver.mails[0]?.from).toBe("127.0.0.7");
  expect(receiver.commands).toContain("EHLO out7.sender.test");
});

test("an address without a name of its own says the server's", async () => {
  const { receiver, send } = await start();
  await send("a@x.test", { source: from("127.0.0.7") });
  expect(receiver.commands).toContain("EHLO mail.sender.test");
});

test("a kept connection serves the address that it was made from, under the name that was said on it", async () => {
  const { receiver, send } = await start();
  for (const source of [
    from("127.0.0.7"),
    from("127.0.0.8"),
    from("127.0.0.7"),
    from("127.0.0.7", "new.sender.test"),
  ])
    await send("a@x.test", { source });
  expect(receiver.mails.map((mail) => [mail.from, mail.connection])).toEqual([
    ["127.0.0.7", 1],
    ["127.0.0.8", 2],
    ["127.0.0.7", 1],
    ["127.0.0.7", 3],
  ]);
});

test("a group's connections are counted for each address by itself", async () => {
  const { receiver, send } = await start({
    limitsOf: () => ({ connections: 1, messagesPerConnection: 100 }),
  });
  for (const source of [from("127.0.0.7"), from("127.0.0.8"), from("127.0.0.7"), from("127.0.0.8")])
    await send("a@x.test", { source });
  expect([receiver.connections, receiver.open]).toEqual([2, 2]);
});

test("an address that is paused has its kept connections closed, and keeps no other", async () => {
  const paused = new Set<string>();
  const { receiver, send, delivery } = await start({ mayUse: (address) => !paused.has(address) });
  await send("a@x.test", { source: from("127.0.0.7") });
  await send("a@x.test", { source: from("127.0.0.8") });
  await send("a@x.test");
  paused.add("127.0.0.7");
  delivery.reconsider();
  await receiver.waitFor(() => receiver.open === 2);
  await send("a@x.test", { source: from("127.0.0.7") }); // it was under way when the pause came
  await receiver.waitFor(() => receiver.open === 2);
  await send("a@x.test", { source: from("127.0.0.8") });
  expect(receiver.mails.map(({ connection }) => connection)).toEqual([1, 2, 3, 4, 2]);
});

test("an address that this machine does not have sends nothing: the mail is untried and the pools are notified", async () => {
  const told: string[] = [];
  const { receiver, delivery } = await start({ onUnusable: (address) => void told.push(address) });
  const route = await delivery.route("x.test", 1);
  if (route.kind !== "hosts") throw new Error("no route");
  const request = makeRequest("a@x.test", { source: from("192.0.2.77") });
  expect(await delivery.attempt({ ...request, route })).toMatchObject({ kind: "unsent" });
  expect([told, receiver.connections]).toEqual([["192.0.2.77"], 0]);
  const six = makeRequest("a@x.test", { source: from("2001:db8::1") });
  expect(await delivery.attempt({ ...six, route })).toMatchObject({ kind: "unsent" });
});

test("a receiver that one of our addresses could not reach is tried from the others at once", async () => {
  const { receiver, send } = await start();
  const { port } = receiver;
  await receiver.stop();
  expect(await send("a@x.test", { source: from("127.0.0.7") })).toMatchObject({ kind: "deferred" });
  receivers = [await startReceiver({ port })];
  expect(await send("a@x.test", { source: from("127.0.0.7") })).toMatchObject({ kind: "deferred" });
  expect(await send("a@x.test", { source: from("127.0.0.8") })).toMatchObject({ kind: "delivered" });
});

test("tells which families reach the first hosts that can be reached at all", async () => {
  const zone: Zone = {
    "x.test": { mx: ["10 none.test", "20 both.test", "20 four.test", "30 six.test"] },
    "none.test": {},
    "both.test": { a: ["127.0.0.1"], aaaa: ["2001:db8:1::1"] },
    "four.test": { a: ["127.0.0.2"] },
    "six.test": { aaaa: ["2600::1"] },
    "y.test": { mx: ["10 six.test"] },
    "z.test": { mx: ["10 six.test", "20 dumb.test"] },
    "dumb.test": "servfail",
  };
  const { delivery } = rig({ port: 25, zone });
  const familiesOf = async (domain: string, own: Family[]) => {
    const route = await delivery.route(domain, 1);
    if (route.kind !== "hosts") throw new Error("no route");
    return delivery.families(route, own, 1);
  };
  expect(await familiesOf("x.test", [4, 6])).toEqual([4]); // 2001:db8:1::1 is not public, and not dialled
  expect(await familiesOf("x.test", [6])).toEqual([6]); // the last host takes it
  expect(await familiesOf("y.test", [4])).toEqual([]);
  expect(await familiesOf("z.test", [4])).toEqual([4]); // the DNS cannot be asked: the attempt says so
  await delivery.stop();
});

test("mail for hosts of the other family goes to the one further down that has the pool's", async () => {
  const receiver = await startReceiver();
  receivers.push(receiver);
  const zone: Zone = {
    "x.test": { mx: ["10 six.test", "20 four.test"] },
    "six.test": { aaaa: ["2600::1"] },
    "four.test": { a: ["127.0.0.1"] },
  };
  const { send } = rig({ port: receiver.port, zone });
  expect(await send("a@x.test", { source: from("127.0.0.7") })).toMatchObject({ kind: "delivered" });
});

test("a question for the pool's family that the DNS did not answer is neither a bounce nor an untried mail", async () => {
  const zone: Zone = { "x.test": { mx: ["10 mail.test"] }, "mail.test": { aaaa: ["2600::1"] } };
  const resolver = {
    ...zoneResolver(zone),
    a: () => Promise.resolve({ kind: "failed" as const, why: "SERVFAIL" }),
  };
  const { delivery, send } = rig({ port: 25, zone, deps: { resolver } });
  const route = await delivery.route("x.test", 1);
  if (route.kind !== "hosts") throw new Error("no route");
  expect(await delivery.families(route, [4], 1)).toEqual([4]);
  expect(await send("a@x.test", { source: from("127.0.0.7") })).toMatchObject({
    kind: "deferred",
    classification: "dns_failure",
  });
});
