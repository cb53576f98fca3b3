// DANE for SMTP (RFC 7672): TLSA records of the mail host that the DNS vouches for decide which certificate is taken.
import { afterEach, beforeAll, expect, test } from "vitest";
import type { OutboundConfig } from "../../src/config.ts";
import { createAuthority, tlsaOf, type Authority, type Identity } from "../support/certificates.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import type { ReceiverOptions } from "../support/smtp-receiver.ts";
import { ManualClock } from "../support/clock.ts";
import { rig, zoneResolver, type Zone } from "./rig.ts";

let authority: Authority;
let own: Identity;
beforeAll(async () => {
  authority = await createAuthority("authority");
  own = await authority.issue(["mail.test"]);
});

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

const chainOf = ({ key, chain }: Identity) => ({ key, cert: chain });
const secure = (tlsa: string[]): Zone => ({
  "x.test": { mx: ["10 mail.test"], secure: true },
  "mail.test": { a: ["127.0.0.1"], tlsa, secure: true },
});

async function send(zone: Zone, receives: ReceiverOptions, outbound: Partial<OutboundConfig> = {}) {
  const receiver = await startReceiver(receives);
  const made = rig({ port: receiver.port, zone, outbound, trusted: [] });
  open.push(
    () => receiver.stop(),
    () => made.delivery.stop(),
  );
  return { receiver, ...made, outcome: await made.send("a@x.test") };
}

const taken = { kind: "delivered", trace: { tls: { verified: true, policy: "dane" } } };
const refused = { kind: "deferred", reply: { code: 451, status: "4.7.5" }, classification: "tls_failure" };

test.each([
  ["its key by SHA-256", 1, 1],
  ["its key by SHA-512", 1, 2],
  ["its key itself", 1, 0],
  ["the whole certificate by SHA-256", 0, 1],
  ["the whole certificate by SHA-512", 0, 2],
  ["the whole certificate itself", 0, 0],
] as const)("a record of the host's own certificate, %s, is matched", async (_what, selector, matching) => {
  const { outcome, receiver } = await send(secure([tlsaOf(own.cert, 3, selector, matching)]), { tls: own });
  expect(outcome).toMatchObject(taken);
  expect(receiver.mails[0]).toMatchObject({ tls: true, serverName: "mail.test" });
});

test("names and dates of the host's own certificate do not matter where it matches", async () => {
  const odd = await authority.issue(["other.test"], { notAfter: new Date(Date.now() - 1000) });
  const { outcome } = await send(secure([tlsaOf(odd.cert, 3)]), { tls: odd });
  expect(outcome).toMatchObject(taken);
});

test("one matching record of several is enough", async () => {
  const another = await authority.issue(["mail.test"]);
  const { outcome } = await send(secure([tlsaOf(another.cert, 3), tlsaOf(own.cert, 3)]), { tls: own });
  expect(outcome).toMatchObject(taken);
});

test("a certificate that matches no record defers the mail, and nothing of it is sent", async () => {
  const another = await authority.issue(["mail.test"]);
  const { outcome, receiver } = await send(secure([tlsaOf(another.cert, 3)]), { tls: own });
  expect(outcome).toMatchObject({
    ...refused,
    trace: { tls: { version: "TLSv1.3", verified: false, policy: "dane" } },
  });
  expect(outcome.reply.text).toContain("matches none of its TLSA records");
  expect(receiver.commands.join()).not.toContain("MAIL");
  expect(receiver.connections).toBe(1);
});

test.each<[string, ReceiverOptions]>([
  ["no STARTTLS on offer", {}],
  ["STARTTLS refused", { reply: { starttls: "454 4.7.0 not now" } }],
  ["a handshake that fails", { breakHandshake: true }],
])("%s defers the mail, never sent in clear", async (_what, receives) => {
  const tls = Object.keys(receives).length === 0 ? {} : { tls: own };
  const { outcome, receiver } = await send(secure([tlsaOf(own.cert, 3)]), { ...receives, ...tls });
  expect(outcome).toMatchObject({
    ...refused,
    trace: { tls: { version: null, cipher: null, verified: false, policy: "dane" } },
  });
  expect(receiver.commands.join()).not.toContain("MAIL");
});

test.each([0, 1] as const)(
  "a record of the authority (selector %i) is matched by a certificate that it signed",
  async (selector) => {
    const { outcome } = await send(secure([tlsaOf(authority.cert, 2, selector)]), { tls: chainOf(own) });
    expect(outcome).toMatchObject(taken);
  },
);

test("under a record of the authority the certificate is for the host, or for the recipient domain", async () => {
  const records = [tlsaOf(authority.cert, 2)];
  const domain = await authority.issue(["x.test"]);
  expect((await send(secure(records), { tls: chainOf(domain) })).outcome).toMatchObject(taken);
  const other = await authority.issue(["other.test"]);
  const { outcome } = await send(secure(records), { tls: chainOf(other) });
  expect(outcome).toMatchObject(refused);
  expect(outcome.reply.text).toContain("not for mail.test");
});

test("under a record of the authority a certificate that has expired is refused", async () => {
  const old = await authority.issue(["mail.test"], { notAfter: new Date(Date.now() - 1000) });
  const { outcome } = await send(secure([tlsaOf(authority.cert, 2)]), { tls: chainOf(old) });
  expect(outcome.reply.text).toContain("expired");
});

test("the authority's certificate beside one that it did not sign is no chain", async () => {
  const stranger = await (await createAuthority("stranger")).issue(["mail.test"]);
  const forged = { key: stranger.key, cert: `${stranger.cert}\n${authority.cert}` };
  const { outcome } = await send(secure([tlsaOf(authority.cert, 2)]), { tls: forged });
  expect(outcome).toMatchObject(refused);
});

test("another certificate that the authority signed is no authority", async () => {
  const stranger = await (await createAuthority("stranger")).issue(["mail.test"]);
  const forged = { key: stranger.key, cert: `${stranger.cert}\n${own.cert}` };
  const { outcome } = await send(secure([tlsaOf(own.cert, 2)]), { tls: forged });
  expect(outcome).toMatchObject(refused);
});

test.each([
  ["usage 0", "0 1 1"],
  ["usage 1", "1 1 1"],
  ["selector 2", "3 2 1"],
  ["matching 3", "3 1 3"],
])("with none but unusable records (%s) TLS is a must, with any certificate", async (_what, head) => {
  const zone = secure([`${head} ${"ab".repeat(32)}`, "3 1 1 abcd"]);
  const { outcome } = await send(zone, { tls: own });
  expect(outcome).toMatchObject({ kind: "delivered", trace: { tls: { verified: false, policy: "dane" } } });
  expect((await send(zone, {})).outcome).toMatchObject(refused);
});

test.each<[string, Zone]>([
  ["the MX", { "x.test": { mx: ["10 mail.test"] } }],
  ["the addresses", { "mail.test": { a: ["127.0.0.1"], tlsa: ["3 1 1 00"] } }],
])("where the DNS does not vouch for %s, TLSA records do not count", async (_what, over) => {
  const another = await authority.issue(["mail.test"]);
  const zone = { ...secure([tlsaOf(another.cert, 3)]), ...over };
  expect((await send(zone, { tls: own })).outcome).toMatchObject({
    kind: "delivered",
    trace: { tls: { policy: "none" } },
  });
});

test("a host whose TLSA records cannot be looked up is left out: another takes the mail, or it is deferred", async () => {
  const receiver = await startReceiver({ tls: own });
  open.push(() => receiver.stop());
  const zone: Zone = {
    ...secure([]),
    "x.test": { mx: ["10 bogus.test", "20 mail.test"], secure: true },
    "bogus.test": { a: ["127.0.0.1"], secure: true, tlsaFails: true },
  };
  const both = rig({ port: receiver.port, zone });
  open.push(() => both.delivery.stop());
  const outcome = await both.send("a@x.test");
  expect(outcome).toMatchObject({ kind: "delivered", trace: { host: "mail.test" } });
  expect(outcome.trace.dialogue[0]?.text).toContain("TLSA records of bogus.test failed");
  const alone = rig({
    port: receiver.port,
    zone: { ...zone, "x.test": { mx: ["10 bogus.test"], secure: true } },
  });
  expect(await alone.send("a@x.test")).toMatchObject({ kind: "deferred", reply: { status: "4.4.3" } });
  expect(receiver.connections).toBe(1);
});

test("records of the name that an alias leads to come first, and that name is asked for", async () => {
  const zone: Zone = {
    "x.test": { mx: ["10 alias.test"], secure: true },
    "alias.test": { a: ["127.0.0.1"], secure: true, canonical: "mail.test", tlsa: ["3 1 1 00"] },
    "mail.test": { secure: true, tlsa: [tlsaOf(own.cert, 3)] },
  };
  const { outcome, receiver } = await send(zone, { tls: own });
  expect(outcome).toMatchObject(taken);
  expect(receiver.mails[0]?.serverName).toBe("mail.test");
});

test("a domain without MX is its own host under DANE", async () => {
  const zone: Zone = { "x.test": { a: ["127.0.0.1"], secure: true, tlsa: [tlsaOf(own.cert, 3)] } };
  expect((await send(zone, { tls: own })).outcome).toMatchObject(taken);
});

test("a kept connection serves the next mail to the host, and none once its records have changed", async () => {
  const zone = secure([tlsaOf(own.cert, 3)]);
  const made = await send(zone, { tls: own });
  expect(await made.send("b@x.test")).toMatchObject(taken);
  expect(made.receiver.connections).toBe(1);
  const another = await authority.issue(["mail.test"]);
  zone["mail.test"] = { a: ["127.0.0.1"], secure: true, tlsa: [tlsaOf(another.cert, 3)] };
  expect(await made.send("c@x.test")).toMatchObject(refused);
});

test("a host whose name leaves no room for that of its TLSA records has none", async () => {
  const long = `${`${"a".repeat(60)}.`.repeat(4)}test`;
  const receiver = await startReceiver({ tls: own });
  open.push(() => receiver.stop());
  const zone: Zone = {
    "x.test": { mx: [`10 ${long}`], secure: true },
    [long]: { a: ["127.0.0.1"], secure: true, tlsaFails: true },
  };
  const made = rig({ port: receiver.port, zone });
  open.push(() => made.delivery.stop());
  expect(await made.send("a@x.test")).toMatchObject({ kind: "delivered" });
});

test("a host whose TLSA records nobody answers for leaves time to look up the next one", async () => {
  const receiver = await startReceiver({ tls: own });
  const zone: Zone = {
    ...secure([]),
    "x.test": { mx: ["10 slow.test", "20 mail.test"], secure: true },
    "slow.test": { a: ["127.0.0.1"], secure: true },
  };
  const resolver = zoneResolver(zone);
  const clock = new ManualClock();
  let asked = (): void => undefined;
  const came = new Promise<void>((resolve) => (asked = resolve));
  const silent: typeof resolver.tlsa = (name, owner) => {
    if (!name.endsWith("slow.test")) return resolver.tlsa(name, owner);
    asked();
    return new Promise(() => undefined);
  };
  const made = rig({ port: receiver.port, zone, clock, deps: { resolver: { ...resolver, tlsa: silent } } });
  open.push(
    () => receiver.stop(),
    () => made.delivery.stop(),
  );
  const outcome = made.send("a@x.test");
  await came;
  await clock.advance(6_000);
  expect(await outcome).toMatchObject({ kind: "delivered", trace: { host: "mail.test" } });
});

test.each<[string, { aliasSecure?: boolean }, string]>([
  [
    "an alias that the DNS vouches for, of a name that it does not, has its own records",
    { aliasSecure: true },
    "dane",
  ],
  ["an alias that the DNS does not vouch for has none", {}, "none"],
])("%s", async (_what, alias, policy) => {
  const zone: Zone = {
    "x.test": { mx: ["10 alias.test"], secure: true },
    "alias.test": {
      a: ["127.0.0.1"],
      canonical: "mail.test",
      tlsa: [tlsaOf(own.cert, 3)],
      tlsaSecure: true,
      ...alias,
    },
    "mail.test": { secure: true, tlsa: ["3 1 1 00"] },
  };
  const { outcome, receiver } = await send(zone, { tls: own });
  expect(outcome).toMatchObject({ kind: "delivered", trace: { tls: { policy } } });
  expect(receiver.mails[0]?.tls).toBe(true);
});

test("an alias that cannot be looked up leaves the host out", async () => {
  const zone: Zone = {
    "x.test": { mx: ["10 alias.test"], secure: true },
    "alias.test": { a: ["127.0.0.1"], canonical: "mail.test", aliasFails: true },
  };
  const { outcome, receiver } = await send(zone, { tls: own });
  expect(outcome).toMatchObject({ kind: "deferred", reply: { status: "4.4.3" } });
  expect(receiver.connections).toBe(0);
});

test("beside a better digest of the same usage and selector a weaker one does not count", async () => {
  const another = await authority.issue(["mail.test"]);
  const better = tlsaOf(another.cert, 3, 1, 2);
  expect((await send(secure([better, tlsaOf(own.cert, 3, 1, 1)]), { tls: own })).outcome).toMatchObject(
    refused,
  );
  for (const [selector, matching] of [
    [0, 1],
    [1, 0],
  ] as const)
    expect(
      (await send(secure([better, tlsaOf(own.cert, 3, selector, matching)]), { tls: own })).outcome,
    ).toMatchObject(taken);
});

test("a better digest that cannot be compared takes nothing from a weaker one", async () => {
  const { outcome } = await send(secure(["3 1 2 00", tlsaOf(own.cert, 3, 1, 1)]), { tls: own });
  expect(outcome).toMatchObject(taken);
});

test("certificates between the host's own and the authority's count in any order", async () => {
  const middle = await authority.below("middle");
  const leaf = await middle.issue(["mail.test"]);
  const stranger = await createAuthority("stranger");
  for (const others of [
    [middle.cert, authority.cert],
    [authority.cert, middle.cert],
    [stranger.cert, authority.cert, stranger.cert, middle.cert],
  ]) {
    const tls = { key: leaf.key, cert: [leaf.cert, ...others].join("\n") };
    expect((await send(secure([tlsaOf(authority.cert, 2)]), { tls })).outcome).toMatchObject(taken);
  }
  const without = { key: leaf.key, cert: [leaf.cert, authority.cert].join("\n") };
  expect((await send(secure([tlsaOf(authority.cert, 2)]), { tls: without })).outcome).toMatchObject(refused);
  const at = { key: leaf.key, cert: [leaf.cert, middle.cert].join("\n") };
  expect((await send(secure([tlsaOf(middle.cert, 2)]), { tls: at })).outcome).toMatchObject(taken);
});
