// Mail of a pool leaves from the pool's address and no other, and says that address's name.
import { afterEach, expect, test } from "vitest";
import type { Source } from "../../src/pools/sources.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { makeRequest, rig } from "./rig.ts";

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
  const { receiver, send } = await start({ connectionsOf: () => 1 });
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

test("an address that this machine does not have sends nothing: the mail is untried and the pools are told", async () => {
  const told: string[] = [];
  const { receiver, delivery } = await start({ onUnusable: (address) => void told.push(address) });
  const route = await delivery.route("x.test");
  if (route.kind !== "hosts") throw new Error("no route");
  const request = makeRequest("a@x.test", { source: from("192.0.2.77") });
  expect(await delivery.attempt({ ...request, route })).toMatchObject({ kind: "unsent" });
  expect([told, receiver.connections]).toEqual([["192.0.2.77"], 0]);
  const six = makeRequest("a@x.test", { source: from("2001:db8::1") });
  expect(await delivery.attempt({ ...six, route })).toMatchObject({ kind: "unsent" });
});

test("tells the families of the first hosts that have an address", async () => {
  const zone = {
    "x.test": { mx: ["10 none.test", "20 both.test", "20 four.test", "30 six.test"] },
    "none.test": {},
    "both.test": { a: ["127.0.0.1"], aaaa: ["2001:db8:1::1"] },
    "four.test": { a: ["127.0.0.2"] },
    "six.test": { aaaa: ["2600::1"] },
  };
  const { delivery } = rig({ port: 25, zone });
  const route = await delivery.route("x.test");
  if (route.kind !== "hosts") throw new Error("no route");
  expect(await delivery.families(route)).toEqual([4]); // 2001:db8:1::1 is not public, and not dialled
  await delivery.stop();
});
