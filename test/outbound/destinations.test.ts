import { describe, expect, test } from "vitest";
import type { AttemptRequest, Route } from "../../src/delivery/delivery.ts";
import { readReturnPathLocal } from "../../src/mail/return-path.ts";
import { sourcesOf, systemSources, type Family, type PoolSources } from "../../src/pools/sources.ts";
import { createDestinations } from "../../src/outbound/destinations.ts";
import { sandboxQueue } from "../../src/queue/queue-name.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import { ContentGone } from "../../src/store/store.ts";
import { makeSuppression } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { bouncedOutcome, deliveredOutcome, makeJob, makeMessage } from "../support/jobs.ts";

const secret = new Uint8Array(32).fill(7);

function makeRig(
  signature: Buffer | null = Buffer.from("DKIM-Signature: x\r\n"),
  shaping = createShaping(null),
) {
  const clock = new ManualClock();
  const attempts: AttemptRequest[] = [];
  const ahead: string[] = [];
  const routed: string[] = [];
  const waiting: [accountKey: number, pool: string][] = [];
  const rig: { route: Route; gone?: boolean; families: Family[] | null; sources: PoolSources } = {
    families: [4, 6],
    sources: systemSources,
    route: {
      kind: "hosts",
      group: "x.test",
      hosts: [{ host: "mx.x.test", preference: 10 }],
      authenticated: false,
      mtaSts: null,
    },
  };
  const destinations = createDestinations({
    delivery: {
      async route(domain) {
        routed.push(domain);
        return rig.route;
      },
      families: async (_route, own) => own.filter((family) => rig.families?.includes(family) ?? true),
      async attempt(request) {
        attempts.push(request);
        if (rig.gone) throw new ContentGone("removed");
        return deliveredOutcome();
      },
    },
    shaping,
    messages: {
      of: async ({ message }) =>
        signature && {
          wire: {
            signature,
            sizeBytes: message.content.sizeBytes,
            async *open() {
              yield Buffer.from(`mail ${message.key}`);
            },
          },
          ascii: async () => null,
        },
      signAhead: ({ id }) => void ahead.push(id),
    },
    pools: {
      sourcesOf: () => rig.sources,
      noteWaiting: (accountKey, pool) => void waiting.push([accountKey, pool]),
    },
    unpaused: (sources) => sources,
    verpSecret: secret,
    clock,
  });
  return { rig, destinations, attempts, routed, clock, ahead, waiting };
}

const always = () => true;
const nowhere = () => null;
const [source = { address: null, hostname: null, weight: 1, warmingSince: null }] =
  systemSources.usable(null);

test("only what a receiver is to get is signed before it is stored", async () => {
  const { destinations, ahead } = makeRig();
  const section = Buffer.from("Subject: s\r\n\r\n");
  for (const queueName of ["1.default/x.test", "~sandbox"])
    (await destinations.destinationOf(queueName)).prepare(makeMessage({ id: `msg_${queueName}` }), section);
  expect(ahead).toEqual(["msg_1.default/x.test"]);
});

test("a scheduled queue without a usable address is noted at its pool; the sandbox has no pool", () => {
  const { destinations, waiting } = makeRig();
  destinations.onNoSource("1.bulk/x.test");
  destinations.onNoSource(sandboxQueue);
  expect(waiting).toEqual([[1, "bulk"]]);
});

describe("a recipient domain's scheduled queue", () => {
  test("goes to its route's hosts, with a return path that names the recipient", async () => {
    const { rig, destinations, attempts, routed } = makeRig();
    const to = await destinations.destinationOf("1.default/x.test");
    expect([to.group, routed]).toEqual(["x.test", ["x.test"]]);
    const message = makeMessage({ key: 31, content: { kind: "inline", id: 31, sizeBytes: 7 } });
    const job = makeJob(42, { message });
    const mayFinish = () => false;
    expect(await to.attempt(job, mayFinish, source, nowhere)).toEqual(deliveredOutcome());
    const [request] = attempts;
    if (!request) throw new Error("no attempt was made");
    expect(request).toMatchObject({
      job,
      route: rig.route,
      mayFinish,
      wire: { signature: Buffer.from("DKIM-Signature: x\r\n"), sizeBytes: 7 },
    });
    const at = request.mailFrom.indexOf("@");
    expect(request.mailFrom.slice(at + 1)).toBe("bounce.ok.test");
    const local = request.mailFrom.slice(0, at);
    expect(readReturnPathLocal(secret, local)).toEqual({ messageKey: 31, recipientKey: 42 });
    expect(readReturnPathLocal(new Uint8Array(32), local)).toBeNull();
    const chunks: Buffer[] = [];
    for await (const chunk of request.wire.open()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("mail 31");
  });

  test("is answered here where its route is an outcome, by the time of the attempt", async () => {
    const { rig, destinations, attempts, clock } = makeRig();
    const decided: [number, number][] = [];
    const outcome = bouncedOutcome({ source: "local", classification: "invalid_domain" });
    rig.route = {
      kind: "outcome",
      decide(job, startedAt) {
        decided.push([job.key, startedAt]);
        return outcome;
      },
    };
    const to = await destinations.destinationOf("1.default/gone.test");
    await clock.advance(5000);
    expect(to.group).toBe("local");
    expect(await to.attempt(makeJob(1), always, source, nowhere)).toBe(outcome);
    expect(decided).toEqual([[1, clock.now()]]);
    expect(attempts).toEqual([]);
  });

  test("bounces what nobody may sign any more, without an attempt", async () => {
    const { destinations, attempts, clock } = makeRig(null);
    const to = await destinations.destinationOf("1.default/x.test");
    expect(await to.attempt(makeJob(1), always, source, nowhere)).toMatchObject({
      kind: "bounced",
      source: "local",
      classification: "invalid_sender",
      reply: { code: 550, status: "5.7.1", text: expect.stringMatching(/^\[local\] ok\.test /) as string },
      trace: { startedAt: clock.now(), endedAt: clock.now(), host: null, dialogue: [] },
    });
    expect(attempts).toEqual([]);
  });
});

describe("the sandbox's scheduled queue", () => {
  test("asks no DNS, opens no connection and signs nothing", async () => {
    const { destinations, attempts, routed } = makeRig();
    const to = await destinations.destinationOf("~sandbox");
    expect(to.group).toBe("sandbox");
    expect(await to.attempt(makeJob(1), always, source, nowhere)).toMatchObject({ kind: "delivered" });
    const bounce = makeJob(2, { domain: "simulator.svc", rcptTo: "bounce@simulator.svc" });
    expect(await to.attempt(bounce, always, source, nowhere)).toMatchObject({ kind: "bounced" });
    expect([attempts, routed]).toEqual([[], []]);
  });

  test("catches what is not the simulator's", () => {
    const { destinations } = makeRig();
    const caught = (queueName: string, domain: string) =>
      destinations.isCaught(makeJob(1, { queueName, domain }));
    expect(caught("~sandbox", "x.test")).toBe(true);
    expect(caught("~sandbox", "simulator.svc")).toBe(false);
    expect(caught("1.default/x.test", "x.test")).toBe(false);
  });
});

describe("a recipient that was suppressed since acceptance", () => {
  const on = (canonical: string) => ({
    suppressed: async (accountKey: number, asked: string[]) =>
      accountKey === 1 && asked.includes(canonical)
        ? [makeSuppression(canonical, { reason: "complaint" })]
        : [],
  });

  test("is bounced here, the reason told", async () => {
    const { destinations, clock } = makeRig();
    const job = makeJob(1, { rcptTo: "Zoe@x.test" });
    expect(await destinations.suppressedSince(on("zoe@x.test"))(job)).toMatchObject({
      kind: "bounced",
      source: "local",
      classification: "suppressed",
      reply: { code: 550, status: "5.7.1", text: expect.stringMatching(/^\[local\] .*complaint/) as string },
      trace: { startedAt: clock.now(), endedAt: clock.now(), sendingIp: null },
    });
  });

  test("is found as the list writes it: quotes that say nothing and decomposed letters make no other address", async () => {
    const { destinations } = makeRig();
    expect(
      await destinations.suppressedSince(on("zoe@x.test"))(makeJob(1, { rcptTo: '"Zoe"@x.test' })),
    ).not.toBeNull();
    expect(
      await destinations.suppressedSince(on("zo\u00eb@x.test"))(makeJob(1, { rcptTo: "zoe\u0308@x.test" })),
    ).not.toBeNull();
  });

  test("is tried where the entry is another's", async () => {
    const { destinations } = makeRig();
    expect(await destinations.suppressedSince(on("a@x.test"))(makeJob(1, { rcptTo: "b@x.test" }))).toBeNull();
    const other = makeJob(1, { rcptTo: "a@x.test", message: makeMessage({ accountKey: 2 }) });
    expect(await destinations.suppressedSince(on("a@x.test"))(other)).toBeNull();
  });
});

test("a message whose content is gone bounces, since no later try could send it", async () => {
  const { rig, destinations } = makeRig();
  rig.gone = true;
  const to = await destinations.destinationOf("1.default/x.test");
  expect(await to.attempt(makeJob(1), always, source, nowhere)).toMatchObject({
    kind: "bounced",
    source: "local",
    classification: "unclassified",
    reply: { code: 550, status: "5.3.0" },
  });
});

describe("a pool with addresses", () => {
  const pool = (...addresses: [address: string, paused?: boolean, ptrOk?: boolean][]): PoolSources =>
    sourcesOf({
      accountKey: 1,
      name: "default",
      description: null,
      isDefault: true,
      createdAt: 0,
      updatedAt: 0,
      addresses: addresses.map(([address, paused = false, ptrOk = true]) => ({
        address,
        hostname: "out.test",
        weight: 1,
        paused,
        warmupStartedAt: null,
        bindable: true,
        ptr: null,
        ptrOk,
        blacklists: [],
        createdAt: 0,
        updatedAt: 0,
      })),
    });

  test("gives its scheduled queue a ready queue of its own and the addresses of a family that the receiver has", async () => {
    const { rig, destinations } = makeRig();
    const readyQueueOf = async (queueName: string) =>
      (await destinations.destinationOf(queueName)).readyQueue;
    expect(await readyQueueOf("1.a/x.test")).not.toBe(await readyQueueOf("2.a/x.test"));
    rig.sources = pool(["192.0.2.1"], ["2001:db8::1"]);
    const addresses = async () =>
      (await destinations.destinationOf("1.default/x.test")).sources().map(({ address }) => address);
    expect(await addresses()).toEqual(["192.0.2.1", "2001:db8::1"]);
    rig.families = [4];
    expect(await addresses()).toEqual(["192.0.2.1"]);
    const other = (await destinations.destinationOf("1.default/x.test")).sourcesOf(6);
    expect(other.map(({ address }) => address)).toEqual(["2001:db8::1"]); // for an attempt that finds no connection
    rig.families = [6];
    expect(await addresses()).toEqual(["2001:db8::1"]);
    rig.families = null; // the DNS cannot be asked: the attempt says so
    expect(await addresses()).toEqual(["192.0.2.1", "2001:db8::1"]);
  });

  test("uses an IPv6 address without a valid reverse name only for a receiver that nothing else reaches", async () => {
    const { rig, destinations } = makeRig();
    rig.sources = pool(["192.0.2.1"], ["2001:db8::1", false, false]);
    const to = () => destinations.destinationOf("1.default/x.test");
    expect((await to()).sources().map(({ address }) => address)).toEqual(["192.0.2.1"]);
    expect((await to()).sourcesOf(6)).toEqual([]);
    rig.families = [6];
    expect((await to()).sources().map(({ address }) => address)).toEqual(["2001:db8::1"]);
  });

  test("leaves the address to the system where the pool has none, whatever the families: its reverse name is not known beforehand", async () => {
    const { rig, destinations } = makeRig();
    for (const families of [[4, 6], [4], [6], null] as const) {
      rig.families = families === null ? null : [...families];
      const to = await destinations.destinationOf("1.default/x.test");
      expect(to.sources().map(({ address }) => address)).toEqual([null]);
      expect(to.sourcesOf(6)).toEqual(to.sources());
    }
  });

  test("waits for a paused address of the right family, and bounces only where there is none", async () => {
    const { rig, destinations, attempts } = makeRig();
    rig.families = [4];
    rig.sources = pool(["192.0.2.1", true], ["2001:db8::1"]);
    expect((await destinations.destinationOf("1.default/x.test")).sources()).toEqual([]);
    rig.sources = pool(["2001:db8::1"]);
    const to = await destinations.destinationOf("1.default/x.test");
    expect(await to.attempt(makeJob(1), always, source, nowhere)).toMatchObject({
      kind: "bounced",
      source: "local",
      reply: { status: "5.4.4" },
      classification: "routing_error",
    });
    expect(attempts).toEqual([]);
  });
});
