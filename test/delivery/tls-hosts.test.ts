// Hosts whose TLS handshake has failed are spoken to in clear at once for a while, where no policy forbids it.
import { afterEach, expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { startReceiver, type Receiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
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
  const receiver = await startReceiver({ tls: tlsFixture, ...receives });
  const { send, delivery } = rig({ port: receiver.port, ...options });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  return { receiver, send };
}

const minute = 60_000;
const handshakes = ({ commands }: Receiver) => commands.filter((line) => line === "STARTTLS").length;

test("after a failed handshake and mail in clear a host is dialled in clear for ten minutes, then with TLS again", async () => {
  const clock = new ManualClock();
  const receives: ReceiverOptions = { breakHandshake: true };
  const { receiver, send } = await start(receives, { clock });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect([receiver.connections, handshakes(receiver)]).toEqual([2, 1]);
  await clock.advance(9 * minute);
  const again = await send("a@x.test");
  expect(again).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(again.trace.dialogue[0]?.text).toBe("(in clear: TLS failed here 540 s ago)");
  expect([receiver.connections, handshakes(receiver)]).toEqual([3, 1]);
  await clock.advance(2 * minute);
  receiver.options.breakHandshake = false;
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { tls: { version: "TLSv1.3" } } });
});

test("a host that takes mail neither way is tried with TLS the next time", async () => {
  const clock = new ManualClock();
  const { receiver, send } = await start({ breakHandshake: true }, { clock });
  receiver.options.reply = { banner: "421 4.3.2 busy" };
  await send("a@x.test");
  await clock.advance(minute);
  receiver.options.reply = {};
  receiver.options.breakHandshake = false;
  expect(await send("a@x.test")).toMatchObject({ trace: { tls: { version: "TLSv1.3" } } });
});

test("a policy that asks for TLS is not concerned by what failed without one", async () => {
  const receiver = await startReceiver({ tls: tlsFixture, breakHandshake: true });
  open.push(() => receiver.stop());
  const { send, delivery } = rig({
    port: receiver.port,
    zone: {
      "x.test": { mx: ["10 mail.test"] },
      "strict.test": { mx: ["10 mail.test"] },
      "mail.test": { a: ["127.0.0.1"] },
    },
    deps: { tlsFor: (domain) => (domain === "strict.test" ? "require" : undefined) },
  });
  open.push(() => delivery.stop());
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(await send("a@strict.test")).toMatchObject({ kind: "deferred", reply: { status: "4.7.5" } });
  expect(receiver.mails.map(({ rcptTo }) => rcptTo)).toEqual([["a@x.test"]]);
});
