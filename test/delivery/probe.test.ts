// A probe: the road of real mail up to the reply to RCPT.
import { afterEach, expect, test } from "vitest";
import { createProbe, type ProbeDeps } from "../../src/delivery/probe.ts";
import { systemSources } from "../../src/pools/sources.ts";
import { idleClock } from "../support/idle-clock.ts";
import { startReceiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
import { impatient, rig, tlsFixture, zoneResolver, type Zone } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

const zone: Zone = {
  "x.test": { mx: ["10 mail.test", "20 backup.test"] },
  "mail.test": { a: ["127.0.0.1"] },
  "null.test": { mx: ["0 ."] },
};

async function start(options: ReceiverOptions = {}, deps: Partial<ProbeDeps> = {}) {
  const receiver = await startReceiver({ tls: tlsFixture, ...options });
  const { delivery, send } = rig({
    port: receiver.port,
    zone,
    outbound: { timeouts: { ...impatient, commandMs: 1000 } },
    deps: { tlsFor: (domain, group) => deps.tlsFor?.(domain, group) },
  });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  const probe = createProbe({
    delivery,
    resolver: zoneResolver(zone),
    sourcesOf: () => systemSources,
    tlsFor: () => "opportunistic",
    hostname: "mail.sender.test",
    clock: idleClock,
    ...deps,
  });
  const ask = (rcptTo: string) =>
    probe({ accountKey: 1, pool: "default", rcptTo, domain: rcptTo.slice(rcptTo.indexOf("@") + 1) });
  return { receiver, send, probe: ask };
}

test("names the hosts, their addresses, TLS and the reply to RCPT, and never says DATA", async () => {
  const { receiver, probe } = await start();
  expect(await probe("ann@x.test")).toMatchObject({
    recipient: "ann@x.test",
    domain: "x.test",
    mxGroup: "mail.test",
    mx: [
      { host: "mail.test", preference: 10, addresses: ["127.0.0.1"], failure: null },
      { host: "backup.test", preference: 20, addresses: [], failure: "it has no address" },
    ],
    tlsWanted: "opportunistic",
    host: "mail.test",
    address: "127.0.0.1",
    sendingIp: "127.0.0.1",
    tls: { version: "TLSv1.3", verified: false },
    outcome: "accepted",
    classification: null,
    smtpCode: 250,
  });
  expect(receiver.commands.filter((line) => /^(MAIL|RCPT|DATA)/.test(line))).toEqual([
    "MAIL FROM:<postmaster@mail.sender.test>",
    "RCPT TO:<ann@x.test>",
  ]);
  expect(receiver.mails).toEqual([]);
});

test.each([
  ["permfail@x.test", "refused"],
  ["tempfail@x.test", "deferred"],
])("%s is %s, by the server's own words", async (address, outcome) => {
  const { probe } = await start();
  const found = await probe(address);
  expect(found).toMatchObject({ outcome, host: "mail.test" });
  expect(found?.classification).not.toBeNull();
  expect(found?.dialogue.at(-1)).toMatchObject({
    from: "them",
    text: `${found?.smtpCode} ${found?.smtpResponse}`,
  });
});

test("mail after a probe begins with RSET on the kept connection, and a server without PIPELINING is asked one by one", async () => {
  for (const pipelining of [true, false]) {
    const { receiver, probe, send } = await start({ pipelining });
    expect(await probe("ann@x.test")).toMatchObject({ outcome: "accepted" });
    expect(await send("bob@x.test")).toMatchObject({ kind: "delivered" });
    expect(receiver.connections).toBe(1);
    expect(receiver.commands.filter((line) => /^(RSET|RCPT|DATA)/.test(line))).toEqual([
      "RCPT TO:<ann@x.test>",
      "RSET",
      "RCPT TO:<bob@x.test>",
      "DATA",
    ]);
  }
});

test("what reaches no server says why: no such domain, null MX, TLS that is asked for, a pool without an address", async () => {
  const { probe } = await start();
  expect(await probe("a@gone.test")).toMatchObject({
    outcome: "unreached",
    classification: "invalid_domain",
    mx: [],
  });
  expect(await probe("a@null.test")).toMatchObject({ outcome: "unreached", smtpStatus: "5.1.10" });
  const strict = await start({}, { tlsFor: () => "verify" });
  expect(await strict.probe("a@x.test")).toMatchObject({
    outcome: "unreached",
    tlsWanted: "verify",
    classification: "tls_failure",
  });
  const empty = await start({}, { sourcesOf: () => ({ families: [4], usable: () => [] }) });
  expect(await empty.probe("a@x.test")).toMatchObject({
    outcome: "unreached",
    smtpResponse: "no address of the pool default can be used",
  });
});

test("ten run at a time: one more is not begun", async () => {
  const { receiver, probe } = await start({ stall: "banner" });
  const begun = Array.from({ length: 10 }, () => probe("a@x.test"));
  expect(await probe("a@x.test")).toBeNull();
  await Promise.all(begun);
  delete receiver.options.stall;
  expect(await probe("a@x.test")).not.toBeNull();
});
