import { dkimVerify } from "mailauth";
import { expect, test } from "vitest";
import {
  BodyHasher,
  createSigner,
  dkimRecordValue,
  generateDkimKey,
  type SignInput,
} from "../../src/mail/dkim.ts";
import type { ContentRef } from "../../src/model/content.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { QueuedMessage } from "../../src/model/queued-recipient.ts";
import { createSignedMessages, type SignedMessages } from "../../src/outbound/signed-message.ts";
import { makeDkimKey, makeDomain } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { makeJob, makeMessage } from "../support/jobs.ts";

const header = "From: shop@ok.test\r\nSubject: s\r\n\r\n";
const bodyMail = Buffer.from(`${header}body\r\n`);

/** Of mail that is not tracked nothing is asked of them. */
const unasked = (): never => {
  throw new Error("a token for mail that is not tracked");
};
const untracked = {
  tokens: { open: unasked, click: unasked, unsubscribe: unasked },
  unsubscribeMailto: unasked,
  publicUrl: "https://mail.svc.test",
  log: { info: () => undefined },
};
const jobOf = (message: QueuedMessage) => makeJob(1, { message });
const signatureOf = async (wire: SignedMessages, message: QueuedMessage) =>
  (await wire.of(jobOf(message)))?.wire.signature ?? null;
const asciiOf = async (wire: SignedMessages, message: QueuedMessage) =>
  (await wire.of(jobOf(message)))?.ascii() ?? null;

/** A wire over one domain and one mail; `signed` is every signature that was asked for. */
function makeRig(over: { domain?: SenderDomain | null; sign?: boolean; mail?: string } = {}) {
  const mail = over.mail === undefined ? bodyMail : Buffer.from(over.mail);
  const clock = new ManualClock();
  const signed: SignInput[] = [];
  const opened: ContentRef[] = [];
  const rig = {
    clock,
    signed,
    opened,
    lookups: 0,
    failure: null as Error | null,
    domain: over.domain === undefined ? makeDomain("ok.test", { dkimKeys: [makeDkimKey()] }) : over.domain,
  };
  const wire = createSignedMessages({
    store: {
      async domainByName(accountKey, name) {
        rig.lookups += 1;
        if (rig.failure) throw rig.failure;
        return rig.domain?.accountKey === accountKey && rig.domain.name === name ? rig.domain : null;
      },
      async *openContent(ref, offset = 0) {
        opened.push(ref);
        for (let at = offset; at < mail.length; at += 7) yield mail.subarray(at, at + 7);
      },
    },
    async signHeader(input) {
      signed.push(input);
      return Buffer.from(`DKIM-Signature: ${signed.length}\r\n`);
    },
    clock,
    sign: over.sign ?? true,
    ...untracked,
  });
  return { ...rig, rig, wire };
}

async function collected(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

const messageOf = (key: number) =>
  makeMessage({
    key,
    id: `msg_${key}`,
    headerLength: header.length,
    content: { kind: "inline", id: key, sizeBytes: bodyMail.length },
  });

test("signs the stored header with every active key of the domain", async () => {
  const { wire, signed, clock } = makeRig({
    domain: makeDomain("ok.test", {
      dkimKeys: [
        makeDkimKey({ selector: "rsa", algorithm: "rsa-sha256" }),
        makeDkimKey({ selector: "new", status: "pending" }),
        makeDkimKey({ selector: "old", status: "retired" }),
        makeDkimKey({ selector: "ed" }),
      ],
    }),
  });
  const message = messageOf(1);
  expect(String(await signatureOf(wire, message))).toBe("DKIM-Signature: 1\r\n");
  expect(signed[0]).toEqual({
    headerSection: Buffer.from(header),
    bodyHash: message.bodyHash,
    signedAt: clock.now(),
    keys: [
      { domain: "ok.test", selector: "rsa", algorithm: "rsa-sha256", privatePem: "pem" },
      { domain: "ok.test", selector: "ed", algorithm: "ed25519-sha256", privatePem: "pem" },
    ],
  });
});

test("what goes over the wire verifies", async () => {
  const key = await generateDkimKey("ed25519-sha256");
  const hasher = new BodyHasher();
  hasher.update(bodyMail.subarray(header.length));
  const wire = createSignedMessages({
    store: {
      domainByName: async () =>
        makeDomain("ok.test", { dkimKeys: [makeDkimKey({ privatePem: key.privatePem })] }),
      async *openContent() {
        yield bodyMail;
      },
    },
    signHeader: async (input) => createSigner()(input),
    clock: new ManualClock(),
    sign: true,
    ...untracked,
  });
  const message = { ...messageOf(1), bodyHash: hasher.digest() };
  const parts: Buffer[] = [(await signatureOf(wire, message)) ?? Buffer.alloc(0)];
  const signed = await wire.of(jobOf(message));
  for await (const chunk of signed?.wire.open() ?? []) parts.push(chunk);
  const { results } = await dkimVerify(Buffer.concat(parts), {
    resolver: async () => [[dkimRecordValue("ed25519-sha256", key.publicKey)]],
  });
  expect(results.map(({ status }) => status.result)).toEqual(["pass"]);
});

test("recipients and tries of one message share one signature, also while it is made", async () => {
  const { wire, signed, opened } = makeRig();
  const message = messageOf(1);
  await Promise.all([signatureOf(wire, message), signatureOf(wire, message)]);
  await signatureOf(wire, { ...message });
  expect([signed.length, opened.length]).toEqual([1, 1]);
  await signatureOf(wire, messageOf(2));
  expect(signed.length).toBe(2);
});

test("a signature that was begun before the message was stored is its only one, whether it is ready or not", async () => {
  const { wire, signed, opened } = makeRig();
  const message = messageOf(1);
  wire.signAhead(message, Buffer.from(header));
  const signatures = [await signatureOf(wire, message), await signatureOf(wire, message)];
  expect(signatures.map(String)).toEqual(["DKIM-Signature: 1\r\n", "DKIM-Signature: 1\r\n"]);
  expect(signed.map(({ headerSection }) => String(headerSection))).toEqual([header]);
  expect(opened).toEqual([]);
});

test("of mail that may still be refused few signatures are begun, the others are made by their attempts", async () => {
  const { wire, signed } = makeRig();
  for (let key = 1; key <= 100; key++) wire.signAhead(messageOf(key), Buffer.from(header));
  await new Promise((done) => setImmediate(done));
  expect(signed.length).toBe(64);
  wire.signAhead(messageOf(101), Buffer.from(header));
  await signatureOf(wire, messageOf(100));
  expect(signed.length).toBe(66);
});

test("a signature that failed before the message was stored is made by its attempt", async () => {
  const { rig, wire, signed } = makeRig();
  rig.failure = new Error("busy");
  wire.signAhead(messageOf(1), Buffer.from(header));
  await new Promise((done) => setImmediate(done));
  rig.failure = null;
  expect(String(await signatureOf(wire, messageOf(1)))).toBe("DKIM-Signature: 1\r\n");
  expect(signed.length).toBe(1);
});

test("a signature older than ten minutes is made again, with the current time", async () => {
  const { wire, signed, clock } = makeRig();
  const message = messageOf(1);
  await signatureOf(wire, message);
  await clock.advance(599_999);
  await signatureOf(wire, message);
  expect(signed.length).toBe(1);
  await clock.advance(1);
  await signatureOf(wire, message);
  expect(signed.map(({ signedAt }) => signedAt)).toEqual([clock.now() - 600_000, clock.now()]);
});

test("signs nothing where a smart host does, and nothing without a signing domain", async () => {
  const off = makeRig({ sign: false });
  expect(await signatureOf(off.wire, messageOf(1))).toEqual(Buffer.alloc(0));
  const on = makeRig();
  expect(await signatureOf(on.wire, { ...messageOf(1), signingDomain: null })).toEqual(Buffer.alloc(0));
  expect([off.signed.length, on.signed.length, off.rig.lookups + on.rig.lookups]).toEqual([0, 0, 0]);
});

test("gives null where the domain is gone, is another account's, or has no active key", async () => {
  expect(await signatureOf(makeRig({ domain: null }).wire, messageOf(1))).toBeNull();
  expect(await signatureOf(makeRig().wire, { ...messageOf(1), accountKey: 2 })).toBeNull();
  const retired = makeDomain("ok.test", { dkimKeys: [makeDkimKey({ status: "retired" })] });
  expect(await signatureOf(makeRig({ domain: retired }).wire, messageOf(1))).toBeNull();
});

test("a domain that comes back signs again", async () => {
  const { rig, wire, clock } = makeRig({ domain: null });
  expect(await signatureOf(wire, messageOf(1))).toBeNull();
  rig.domain = makeDomain("ok.test", { dkimKeys: [makeDkimKey()] });
  await clock.advance(1000);
  expect(await signatureOf(wire, messageOf(1))).not.toBeNull();
});

test("the keys of a domain are read once a second at most, however many messages it has", async () => {
  const { rig, wire, clock } = makeRig();
  await Promise.all(Array.from({ length: 20 }, (_, i) => signatureOf(wire, messageOf(i))));
  expect(rig.lookups).toBe(1);
  await clock.advance(1000);
  await signatureOf(wire, messageOf(99));
  expect(rig.lookups).toBe(2);
});

test("a failure is not kept", async () => {
  const { rig, wire } = makeRig();
  rig.failure = new Error("busy");
  await expect(signatureOf(wire, messageOf(1))).rejects.toThrow("busy");
  rig.failure = null;
  expect(await signatureOf(wire, messageOf(1))).not.toBeNull();
});

test("keeps at most 2,000 signatures, the newest", async () => {
  const { wire, signed } = makeRig();
  for (let key = 0; key <= 2000; key++) await signatureOf(wire, messageOf(key));
  await signatureOf(wire, messageOf(2000));
  expect(signed.length).toBe(2001);
  await signatureOf(wire, messageOf(0));
  expect(signed.length).toBe(2002);
});

test("makes and signs an ASCII form once a message, which reads the same", async () => {
  const wide = `${header.trimEnd()}\r\nX-Name: Jörg\r\n\r\n`;
  const { wire, signed } = makeRig({ mail: `${wide}mit den allerbesten Grüßen\r\n` });
  const message = { ...messageOf(1), headerLength: Buffer.byteLength(wide) };
  const [form, again] = await Promise.all([asciiOf(wire, message), asciiOf(wire, message)]);
  expect(again).toBe(form);
  if (!form) throw new Error("it has an ASCII form");
  const bytes = await collected(form.open());
  const end = bytes.indexOf("\r\n\r\n") + 4;
  expect(bytes.toString()).toContain("X-Name: =?UTF-8?B?SsO2cmc=?=\r\n");
  expect(bytes.subarray(end).toString()).toBe("mit den allerbesten Gr=C3=BC=C3=9Fen\r\n");
  expect(form.sizeBytes).toBe(bytes.length);
  expect(String(form.signature)).toBe("DKIM-Signature: 2\r\n");
  const hasher = new BodyHasher();
  hasher.update(bytes.subarray(end));
  // The first is that of the message as it is.
  expect(signed).toHaveLength(2);
  expect(signed[1]).toMatchObject({ headerSection: bytes.subarray(0, end), bodyHash: hasher.digest() });
});

test("has no ASCII form for an address that needs SMTPUTF8", async () => {
  const wide = "From: jörg@ok.test\r\n\r\n";
  const { wire } = makeRig({ mail: `${wide}x\r\n` });
  expect(await asciiOf(wire, { ...messageOf(1), headerLength: Buffer.byteLength(wide) })).toBeNull();
});
