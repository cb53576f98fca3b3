// MTA-STS policies at work (RFC 8461 §5): which hosts and certificates are taken, and that nothing goes in clear.
import { afterEach, beforeAll, expect, test } from "vitest";
import type { KeptMtaStsPolicy, MtaStsMode } from "../../src/model/mta-sts.ts";
import type { OutboundTls } from "../../src/model/tls.ts";
import { createAuthority, type Authority, type Identity } from "../support/certificates.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { ReceiverOptions } from "../support/smtp-receiver.ts";
import { rig, type Zone } from "./rig.ts";

let authority: Authority;
let right: Identity;
let wrong: Identity;
beforeAll(async () => {
  authority = await createAuthority("authority");
  right = await authority.issue(["mail.test"]);
  wrong = await authority.issue(["other.test"]);
});

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

const zone: Zone = { "x.test": { mx: ["10 mail.test"] }, "mail.test": { a: ["127.0.0.1"] } };

async function send(
  mode: MtaStsMode,
  receives: ReceiverOptions,
  {
    mx = ["mail.test"],
    tlsFor = undefined as OutboundTls | undefined,
    zone: given = zone,
  }: { mx?: string[]; tlsFor?: OutboundTls; zone?: Zone } = {},
) {
  const receiver = await startReceiver(receives);
  const policy: KeptMtaStsPolicy = {
    domain: "x.test",
    id: "1",
    mode,
    mx,
    fetchedAt: 0,
    expiresAt: 86_400_000,
  };
  const made = rig({
    port: receiver.port,
    zone: given,
    trusted: [authority.cert],
    deps: {
      mtaStsOf: (domain) => Promise.resolve(domain === "x.test" ? policy : null),
      tlsFor: (domain) => (domain === "x.test" ? tlsFor : undefined),
    },
  });
  open.push(
    () => receiver.stop(),
    () => made.delivery.stop(),
  );
  return { receiver, outcome: await made.send("a@x.test") };
}

const refused = { kind: "deferred", reply: { code: 451, status: "4.7.5" }, classification: "tls_failure" };

test("under enforce a host that the policy names, with a certificate for its name, gets the mail", async () => {
  for (const mx of [["mail.test"], ["no.test", "*.test"]]) {
    const { outcome } = await send("enforce", { tls: right }, { mx });
    expect(outcome).toMatchObject({
      kind: "delivered",
      trace: { tls: { verified: true, policy: "mta-sts" } },
    });
  }
});

test.each<[string, () => ReceiverOptions, string | null]>([
  ["a certificate for another name", () => ({ tls: wrong }), "TLSv1.3"],
  ["no STARTTLS on offer", () => ({}), null],
  ["STARTTLS refused", () => ({ tls: right, reply: { starttls: "454 4.7.0 not now" } }), null],
  ["a handshake that fails", () => ({ tls: right, breakHandshake: true }), null],
])("under enforce %s defers the mail, never sent in clear", async (_what, receives, version) => {
  const { outcome, receiver } = await send("enforce", receives());
  expect(outcome).toMatchObject({
    ...refused,
    trace: { tls: { version, verified: false, policy: "mta-sts" } },
  });
  expect(outcome.reply.text).toContain("the domain's MTA-STS policy is enforced");
  expect(receiver.commands.join()).not.toContain("MAIL");
});

test("under enforce a host that the policy does not name is not dialled, and the attempt says why", async () => {
  const { outcome, receiver } = await send("enforce", { tls: right }, { mx: ["other.test"] });
  expect(outcome).toMatchObject({
    ...refused,
    trace: { host: null, tls: { version: null, cipher: null, verified: false, policy: "mta-sts" } },
  });
  expect(outcome.reply.text).toBe("[local] the MTA-STS policy of x.test does not name the MX mail.test");
  expect(receiver.connections).toBe(0);
});

test("under enforce a host that the policy names takes the mail that one before it may not have", async () => {
  const two: Zone = {
    "x.test": { mx: ["10 first.test", "20 mail.test"] },
    "first.test": { a: ["127.0.0.1"] },
    "mail.test": { a: ["127.0.0.1"] },
  };
  const { outcome, receiver } = await send("enforce", { tls: right }, { zone: two });
  expect(outcome).toMatchObject({ kind: "delivered", trace: { host: "mail.test" } });
  expect(receiver.connections).toBe(1);
});

test("under testing mail is sent as without a policy", async () => {
  for (const receives of [{ tls: wrong }, {}, { tls: right, breakHandshake: true }]) {
    const { outcome } = await send("testing", receives, { mx: ["other.test"] });
    expect(outcome.kind).toBe("delivered");
    expect(outcome.trace.tls?.policy ?? "none").toBe("none");
  }
});

test("the operator's rule of a domain holds for it, and MTA-STS only adds to it", async () => {
  const required = await send("testing", {}, { tlsFor: "require" });
  expect(required.outcome).toMatchObject({
    ...refused,
    trace: { tls: { version: null, policy: "require" } },
  });
  const enforced = await send("enforce", { tls: wrong }, { tlsFor: "opportunistic" });
  expect(enforced.outcome).toMatchObject(refused);
});
