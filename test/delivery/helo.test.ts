// Servers that drop the connection at EHLO in place of refusing it (RFC 5321 §3.2).
import { afterEach, expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { Receiver, ReceiverOptions } from "../support/smtp-receiver.ts";
import { rig, tlsFixture } from "./rig.ts";
import type { Rig, RigOptions } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(
  receives: ReceiverOptions,
  options: Omit<RigOptions, "port"> = {},
): Promise<{ receiver: Receiver; send: Rig["send"] }> {
  const receiver = await startReceiver(receives);
  const { send, delivery } = rig({ port: receiver.port, ...options });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  return { receiver, send };
}

const greetings = ({ commands }: Receiver): string[] =>
  commands.flatMap((command) => /^(?:EHLO|HELO)/.exec(command)?.[0] ?? []);

test("a server that drops the connection at EHLO gets the mail by HELO, and for an hour no EHLO", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ drop: "ehlo", tls: tlsFixture }, { clock });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(outcome.trace.dialogue.map(({ text }) => text)).toContain("(again, with HELO)");
  expect(greetings(receiver)).toEqual(["EHLO", "HELO"]);
  await clock.advance(3_500_000); // the kept connection is let go meanwhile
  expect(await send("b@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "HELO"]);
  await clock.advance(100_000);
  expect(await send("c@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "HELO", "EHLO", "HELO"]);
});

test("where HELO fails too, an attempt is one failure, and for an hour HELO is not tried again", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ drop: "ehlo", reply: { helo: "421 4.3.2 busy" } }, { clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.3.2" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", reply: { code: 421, status: "4.4.2" } });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "EHLO"]);
});

test("a host that no longer takes HELO is asked with EHLO the next time", async () => {
  const receives: ReceiverOptions = { drop: "ehlo" };
  const clock = new ManualClock();
  const { receiver, send } = await start(receives, { clock });
  await send("a@x.test");
  await clock.advance(20_000);
  delete receives.drop;
  receives.reply = { helo: "502 5.5.1 speak EHLO" };
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered" });
  expect(greetings(receiver)).toEqual(["EHLO", "HELO", "HELO", "EHLO"]);
});

test.each([
  ["TLS is required", { outbound: { tls: "require" } }],
  ["a certificate has to be valid", { outbound: { tls: "verify" } }],
] as const)("HELO is not tried where %s: it has no STARTTLS", async (_what, options) => {
  const { receiver, send } = await start({ drop: "ehlo" }, options);
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(greetings(receiver)).toEqual(["EHLO"]);
});

test("silence and nonsense at EHLO are no reason for HELO", async () => {
  const { receiver, send } = await start({ reply: { ehlo: "what?" } });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred" });
  expect(greetings(receiver)).toEqual(["EHLO"]);
});
