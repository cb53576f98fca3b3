// An attempt whose address could not connect goes on from an address of the pool of the other family.
import { afterEach, expect, test } from "vitest";
import type { Family, Source } from "../../src/pools/sources.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { makeRequest, rig, type Rig, type RigOptions, type Zone } from "./rig.ts";

let receivers: Receiver[] = [];
afterEach(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  receivers = [];
});

const four: Source = { address: "127.0.0.7", hostname: "four.sender.test", weight: 1, warmingSince: null };
const six: Source = { address: "::1", hostname: "six.sender.test", weight: 1, warmingSince: null };
const networks = { allowNetworks: ["127.0.0.0/8", "::1/128"] };
const zone: Zone = {
  "x.test": { mx: ["10 mail.test"] },
  "mail.test": { a: ["127.0.0.1"], aaaa: ["::1"] },
};

const listen = async (options: Parameters<typeof startReceiver>[0]): Promise<Receiver> => {
  const receiver = await startReceiver(options);
  receivers.push(receiver);
  return receiver;
};

const rigAt = (port: number, options: Partial<RigOptions> = {}): Rig =>
  rig({ port, zone, outbound: networks, ...options });

/** One attempt from `source`; of which families another source was asked for. */
const tried = async (
  { delivery }: Rig,
  { source = four, other = six }: { source?: Source; other?: Source | null } = {},
) => {
  const asked: Family[] = [];
  const route = await delivery.route("x.test", 1);
  if (route.kind !== "hosts") throw new Error("no route");
  const request = makeRequest("a@x.test", { source });
  const sourceOf = (family: Family): Source | null => {
    asked.push(family);
    return other;
  };
  const outcome = await delivery.attempt({ ...request, route, sourceOf });
  return { outcome, asked };
};

test("a host that refuses every IPv4 connection gets the mail over IPv6 in the same attempt", async () => {
  const receiver = await listen({ address: "::1" });
  const { outcome, asked } = await tried(rigAt(receiver.port));
  expect(outcome).toMatchObject({ kind: "delivered", trace: { sendingIp: "::1", address: "::1" } });
  expect(asked).toEqual([6]);
  expect(receiver.commands).toContain("EHLO six.sender.test");
});

test("a host that refuses every IPv6 connection gets the mail over IPv4 in the same attempt", async () => {
  const receiver = await listen({});
  const { outcome, asked } = await tried(rigAt(receiver.port), { source: six, other: four });
  expect(outcome).toMatchObject({ kind: "delivered", trace: { sendingIp: "127.0.0.7" } });
  expect(asked).toEqual([4]);
});

test("an address that was found dead a moment ago is skipped, and the other family is used", async () => {
  const receiver = await listen({ address: "::1" });
  const both = rigAt(receiver.port);
  await tried(both, { other: null });
  const { outcome, asked } = await tried(both);
  expect([outcome.kind, asked]).toEqual(["delivered", [6]]);
});

test("a server that answered, if only to refuse, decides for its family", async () => {
  const receiver = await listen({ banner: "421 busy" });
  await listen({ address: "::1", port: receiver.port });
  const { outcome, asked } = await tried(rigAt(receiver.port));
  expect(outcome).toMatchObject({ kind: "deferred", reply: { code: 421 } });
  expect(asked).toEqual([]);
});

test("nothing is asked for where the hosts have no address of the other family", async () => {
  const receiver = await listen({ address: "::1" });
  const only = { "x.test": { mx: ["10 mail.test"] }, "mail.test": { a: ["127.0.0.1"] } };
  const { outcome, asked } = await tried(rigAt(receiver.port, { zone: only }));
  expect([outcome.kind, asked]).toEqual(["deferred", []]);
});

test("a host further down that has the other family alone is reached too", async () => {
  const receiver = await listen({ address: "::1" });
  const down: Zone = {
    "x.test": { mx: ["10 four.test", "20 six.test"] },
    "four.test": { a: ["127.0.0.1"] },
    "six.test": { aaaa: ["::1"] },
  };
  const { outcome } = await tried(rigAt(receiver.port, { zone: down }));
  expect(outcome).toMatchObject({ kind: "delivered", trace: { host: "six.test" } });
});

test("without an address of the other family that has room the attempt ends as it stood", async () => {
  const receiver = await listen({ address: "::1" });
  const { outcome, asked } = await tried(rigAt(receiver.port), { other: null });
  expect(outcome).toMatchObject({ kind: "deferred", trace: { address: "127.0.0.1" } });
  expect([asked, receiver.connections]).toEqual([[6], 0]);
});

test("an address of the other family that this machine does not have leaves the first failure, and the pools are notified", async () => {
  const told: string[] = [];
  const receiver = await listen({ address: "::1" });
  const both = rigAt(receiver.port, { deps: { onUnusable: (address) => void told.push(address) } });
  const { outcome } = await tried(both, { other: { ...six, address: "2001:db8::77" } });
  expect(outcome).toMatchObject({ kind: "deferred", reply: { text: expect.stringContaining("127.0.0.1") } });
  expect([told, receiver.connections]).toEqual([["2001:db8::77"], 0]);
});

test("both families together dial five addresses at most", async () => {
  const receiver = await listen({ address: "::1" });
  const many: Zone = {
    "x.test": { mx: ["10 mail.test"] },
    "mail.test": { a: ["1", "2", "3", "4", "5"].map((last) => `127.0.1.${last}`), aaaa: ["::1"] },
  };
  const { outcome, asked } = await tried(rigAt(receiver.port, { zone: many }));
  expect([outcome.kind, asked, receiver.connections]).toEqual(["deferred", [], 0]);
});
