import { afterEach, expect, test } from "vitest";
import type { OutboundConfig, SmartHost } from "../../src/config.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { ReceiverOptions } from "../support/smtp-receiver.ts";
import { impatient, rig, tlsFixture } from "./rig.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(
  options: ReceiverOptions,
  outbound: Partial<OutboundConfig> = {},
  trusted: string[] = [],
) {
  const receiver = await startReceiver({ tls: tlsFixture, ...options });
  const made = rig({
    port: receiver.port,
    outbound: { timeouts: { ...impatient, commandMs: 1000 }, ...outbound },
    trusted,
  });
  open.push(
    () => receiver.stop(),
    () => made.delivery.stop(),
  );
  return { receiver, ...made };
}

test("mail goes over TLS where it is offered, and says truthfully what the certificate was", async () => {
  const untrusted = await start({});
  expect(await untrusted.send("a@x.test")).toMatchObject({
    kind: "delivered",
    trace: { tls: { version: "TLSv1.3", cipher: /^TLS_/, verified: false, policy: "none" } },
  });
  expect(untrusted.receiver.mails[0]).toMatchObject({ tls: true, serverName: "mail.test" });
  const trusted = await start({}, {}, [tlsFixture.cert]);
  expect((await trusted.send("a@x.test")).trace.tls?.verified).toBe(true);
  expect((await trusted.send("b@x.test")).trace.tls?.verified).toBe(true);
  expect(trusted.receiver.connections).toBe(1);
});

test("a domain of which the operator asks TLS gets no mail in clear, another one does", async () => {
  const receiver = await startReceiver({});
  const zone = {
    "x.test": { mx: ["10 mail.test"] },
    "y.test": { mx: ["10 mail.test"] },
    "mail.test": { a: ["127.0.0.1"] },
  };
  const { send, delivery } = rig({
    port: receiver.port,
    zone,
    deps: { tlsFor: (domain) => (domain === "x.test" ? "require" : undefined) },
  });
  open.push(
    () => receiver.stop(),
    () => delivery.stop(),
  );
  expect(await send("a@y.test")).toMatchObject({ kind: "delivered" });
  expect(await send("a@x.test")).toMatchObject({ kind: "deferred", classification: "tls_failure" });
});

test("after the handshake only a new EHLO counts", async () => {
  const { receiver, send } = await start({});
  await send("a@x.test");
  expect(receiver.commands.slice(0, 4).map((line) => line.split(" ")[0])).toEqual([
    "EHLO",
    "STARTTLS",
    "EHLO",
    "MAIL",
  ]);
});

test.each(["250-SIZE 1\r\n250 X\r\n", "250-SIZE 1\r\n250 X", "250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n"])(
  "clear text that was slipped in after the 220 (%j) is forgotten",
  async (injectAfterStarttls) => {
    const { receiver, send } = await start({ injectAfterStarttls });
    expect(await send("a@x.test")).toMatchObject({
      kind: "delivered",
      trace: { tls: { version: "TLSv1.3" } },
    });
    expect(receiver.mails[0]).toMatchObject({ tls: true, rcptTo: ["a@x.test"] });
  },
);

test("a handshake that fails is followed by clear text on the same address in the same attempt", async () => {
  const { receiver, send } = await start({ breakHandshake: true });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(receiver.connections).toBe(2);
  expect(receiver.mails[0]?.tls).toBe(false);
  expect(receiver.open).toBe(1);
  expect(outcome.trace.dialogue.map((line) => line.text)).toContain("(again, in clear)");
});

test.each([
  ["a handshake that never ends", { stall: "handshake" }],
  ["a hang-up at STARTTLS", { drop: "starttls" }],
  ["STARTTLS refused", { reply: { starttls: "454 4.7.0 not now" } }],
] as const)("opportunistic TLS: %s ends in clear", async (_what, options) => {
  const { receiver, send } = await start(options, { timeouts: impatient });
  expect(await send("a@x.test")).toMatchObject({ kind: "delivered", trace: { tls: null } });
  expect(receiver.mails[0]?.tls).toBe(false);
});

test.each<[OutboundConfig["tls"], string, ReceiverOptions]>([
  ["require", "STARTTLS is not offered", { reply: { ehlo: "250 receiver.test" } }],
  ["require", "the handshake fails", { breakHandshake: true }],
  ["require", "STARTTLS is refused", { reply: { starttls: "454 4.7.0 not now" } }],
  ["verify", "the certificate is not trusted", {}],
])("under %s, mail is deferred and never sent in clear when %s", async (tls, _what, options) => {
  const { receiver, send } = await start(options, { tls });
  const outcome = await send("a@x.test");
  expect(outcome).toMatchObject({
    kind: "deferred",
    reply: { code: 451, status: "4.7.5" },
    classification: "tls_failure",
  });
  expect(outcome.reply.text).toMatch(/^\[local\] [^\p{Cc}]+$/u);
  expect(receiver.commands.join()).not.toContain("MAIL");
  await receiver.waitFor(() => receiver.open === 0);
});

test("verify wants a certificate for the MX host's name, not just a trusted one", async () => {
  const right = await start({}, { tls: "verify" }, [tlsFixture.cert]);
  expect(await right.send("a@x.test")).toMatchObject({
    kind: "delivered",
    trace: { tls: { verified: true, policy: "verify" } },
  });
  const receiver = await startReceiver({ tls: tlsFixture });
  open.push(() => receiver.stop());
  const zone = { "x.test": { mx: ["10 other.test"] }, "other.test": { a: ["127.0.0.1"] } };
  const wrong = rig({
    port: receiver.port,
    zone,
    outbound: { tls: "verify" },
    trusted: [tlsFixture.cert],
  });
  const outcome = await wrong.send("a@x.test");
  expect(outcome).toMatchObject({ kind: "deferred", reply: { status: "4.7.5" } });
  expect(outcome.reply.text).toContain("no certificate valid for other.test");
});

const login = { user: "svc", password: "correct horse" };
const smartHost = (port: number, tls: SmartHost["tls"], over: Partial<SmartHost> = {}): SmartHost => ({
  host: "localhost",
  port,
  ...login,
  tls,
  allowUnverifiedPassword: false,
  ...over,
});

test.each(["PLAIN LOGIN", "LOGIN"])(
  "a smart host gets the login under TLS by AUTH %s, and the dialogue does not",
  async (mechanisms) => {
    const receiver = await startReceiver({ tls: tlsFixture, auth: { ...login, mechanisms } });
    open.push(() => receiver.stop());
    const made = rig({
      port: 1,
      outbound: { smartHost: smartHost(receiver.port, "verify") },
      trusted: [tlsFixture.cert],
    });
    open.push(() => made.delivery.stop());
    const outcome = await made.send("a@anywhere.test");
    expect(outcome).toMatchObject({
      kind: "delivered",
      trace: { tls: { verified: true, policy: "verify" } },
    });
    const told = JSON.stringify(outcome);
    for (const secret of [
      login.password,
      Buffer.from(login.password).toString("base64"),
      Buffer.from(`\0svc\0${login.password}`).toString("base64"),
    ])
      expect(told).not.toContain(secret);
  },
);

test.each<[string, Partial<SmartHost>, ReceiverOptions, string]>([
  [
    "a wrong password",
    { password: "wrong", allowUnverifiedPassword: true },
    { tls: tlsFixture, auth: login },
    "5.7.8",
  ],
  ["no AUTH on offer", { allowUnverifiedPassword: true }, { tls: tlsFixture }, "4.7.0"],
  ["no TLS on offer", { allowUnverifiedPassword: true }, { auth: login }, "4.7.5"],
  ["no verified certificate", {}, { tls: tlsFixture, auth: login }, "4.7.5"],
  ["no verified certificate", { tls: "require" }, { tls: tlsFixture, auth: login }, "4.7.5"],
])("a smart host with %s defers: the mail is not to blame", async (_what, over, options, status) => {
  const receiver = await startReceiver(options);
  open.push(() => receiver.stop());
  const made = rig({ port: 1, outbound: { smartHost: smartHost(receiver.port, "opportunistic", over) } });
  expect(await made.send("a@anywhere.test")).toMatchObject({ kind: "deferred", reply: { status } });
  expect(receiver.commands.join()).not.toContain("MAIL");
  if (status === "4.7.5") expect(receiver.commands.join()).not.toContain("AUTH");
});
