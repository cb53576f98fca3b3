// What each recipient of a tracked message is sent: links, pixel and List-Unsubscribe of its own, signed as it is.
import { createHash } from "node:crypto";
import { dkimVerify } from "mailauth";
import PostalMime from "postal-mime";
import { expect, test } from "vitest";
import { BodyHasher, createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";
import type { MessageTracking, TokenRecipient } from "../../src/model/tracking.ts";
import { createSignedMessages, type SignedMessage } from "../../src/outbound/signed-message.ts";
import { makeDkimKey, makeDomain } from "../submission/rig.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { makeJob, makeMessage } from "../support/jobs.ts";

const all: MessageTracking = { opens: true, clicks: true, unsubscribe: true };
const key = await generateDkimKey("ed25519-sha256");

const token = (purpose: string, { messageId, recipientKey, email }: TokenRecipient, target = ""): string =>
  `${purpose}-${recipientKey}-${createHash("sha256").update(`${messageId} ${email} ${target}`).digest("hex")}`;

/** The mail with LF line ends. */
function makeRig(
  mail: string,
  domain = makeDomain("ok.test", { dkimKeys: [makeDkimKey({ privatePem: key.privatePem })] }),
) {
  const bytes = Buffer.from(mail.replaceAll("\n", "\r\n"));
  const headerLength = bytes.indexOf("\r\n\r\n") + 4;
  const hasher = new BodyHasher();
  hasher.update(bytes.subarray(headerLength));
  const rig = { reads: 0, made: 0, told: [] as object[], clock: new ManualClock() };
  const messages = createSignedMessages({
    store: {
      domainByName: async () => domain,
      async *openContent(_ref, offset = 0) {
        rig.reads += 1;
        for (let at = offset; at < bytes.length; at += 60_000) yield bytes.subarray(at, at + 60_000);
      },
    },
    signHeader: async (input) => createSigner()(input),
    clock: rig.clock,
    sign: true,
    tokens: {
      open: (of) => token("o", of),
      click: (of, target) => {
        rig.made += 1;
        // Another one each time: a copy that is made twice would not verify.
        return `${token("c", of, target)}-${rig.made}`;
      },
      unsubscribe: (of) => token("u", of),
    },
    unsubscribeMailto: ({ key, message }) => `mailto:u+${message.key}.${key}@mail.svc.test`,
    publicUrl: "https://mail.svc.test",
    log: { info: (about: object) => void rig.told.push(about) },
  });
  const message = makeMessage({
    headerLength,
    bodyHash: hasher.digest(),
    content: { kind: "inline", id: 1, sizeBytes: bytes.length },
  });
  const of = async (to: number, tracking: MessageTracking | null = all): Promise<SignedMessage> => {
    const made = await messages.of(makeJob(to, { message: { ...message, tracking } }));
    if (!made) throw new Error("it is not signed");
    return made;
  };
  return { rig, bytes, messages, of };
}

async function bytesOf({ signature, sizeBytes, open }: SignedMessage["wire"]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of open()) chunks.push(chunk);
  const mail = Buffer.concat(chunks);
  expect(mail.length).toBe(sizeBytes);
  return Buffer.concat([signature, mail]);
}

async function verified(mail: Buffer): Promise<string[]> {
  const { results } = await dkimVerify(mail, {
    resolver: async () => [[dkimRecordValue("ed25519-sha256", key.publicKey)]],
  });
  return results.map(({ status }) => status.result);
}

const head = "From: shop@ok.test\nTo: a@x.test\nSubject: s\nMIME-Version: 1.0\n";
const link = '<a href="https://t.test/">x</a>';
const html = (body: string): string => `${head}Content-Type: text/html; charset=utf-8\n\n${body}\n`;

test("a copy has the recipient's own links, pixel and ways to unsubscribe, and verifies", async () => {
  const { of } = makeRig(html('<a href="https://t.test/?a&amp;b">x</a>'));
  const copies = await Promise.all([of(1), of(2)].map(async (one) => bytesOf((await one).wire)));
  expect(await Promise.all(copies.map(verified))).toEqual([["pass"], ["pass"]]);
  for (const [i, copy] of copies.entries()) {
    const { html: shown, headers } = await PostalMime.parse(copy);
    const recipient = {
      messageId: "msg_01jdkq4y8z0000000000000001",
      recipientKey: i + 1,
      email: `r${i + 1}@x.test`,
      accountKey: 1,
      test: false,
    };
    expect(shown).toContain(
      `<a href="https://mail.svc.test/c/${token("c", recipient, "https://t.test/?a&b")}-${i + 1}">x</a>`,
    );
    expect(shown).toContain(
      `<img src="https://mail.svc.test/o/${token("o", recipient)}" width="1" height="1" alt="">`,
    );
    const valueOf = (name: string) =>
      headers.filter(({ key: of }) => of === name).map(({ value }) => value.replace(/\s+/g, " "));
    expect(valueOf("list-unsubscribe")).toEqual([
      `<https://mail.svc.test/u/${token("u", recipient)}>, <mailto:u+1.${i + 1}@mail.svc.test>`,
    ]);
    expect(valueOf("list-unsubscribe-post")).toEqual(["List-Unsubscribe=One-Click"]);
  }
  const [h = ""] = /h=[^;]*/.exec(copies[0]?.toString() ?? "") ?? [];
  expect(h.replace(/\s/g, "").match(/List-Unsubscribe(?:-Post)?/g)).toHaveLength(4);
});

test("a copy may be sent more than once, and is the same octets each time, whatever its size", async () => {
  for (const padding of ["", `${"<p>long text, long text</p>\n".repeat(20_000)}`]) {
    const { of, rig } = makeRig(
      html(`<a href="https://t.test/">x</a>\n${padding}<a href="https://u.test/">y</a></body>`),
    );
    const { wire } = await of(1);
    const first = await bytesOf(wire);
    expect(await verified(first)).toEqual(["pass"]);
    expect(await bytesOf(wire)).toEqual(first);
    expect(rig.made).toBe(2);
  }
});

test("the places are looked for once a message, for all its recipients and tries; a link that stands there twice has one token", async () => {
  const { of, rig } = makeRig(html('<a href="https://t.test/">x</a>'.repeat(3)));
  await Promise.all([of(1), of(2), of(1)]);
  expect([rig.reads, rig.made]).toEqual([3, 3]);
});

test("the form for a receiver that takes only ASCII is made of the copy, and verifies", async () => {
  const { of } = makeRig(html('<p>Grüße</p><a href="https://t.test/">x</a>'));
  const ascii = await (await of(1)).ascii();
  if (!ascii) throw new Error("it has no ASCII form");
  const mail = await bytesOf(ascii);
  expect(await verified(mail)).toEqual(["pass"]);
  expect(mail.every((octet) => octet < 128)).toBe(true);
  expect((await PostalMime.parse(mail)).html).toMatch(
    /Grüße<\/p><a href="https:\/\/mail\.svc\.test\/c\/c-1-/,
  );
});

test.each<[string, string, MessageTracking | null]>([
  ["is not tracked", html('<a href="https://t.test/">'), null],
  ["has no HTML", `${head}\nhttps://t.test/\n`, { ...all, unsubscribe: false }],
  ["has no link", html("x"), { opens: false, clicks: true, unsubscribe: false }],
  [
    "has a header that nobody could read",
    `${head}Content-Type: multipart/mixed; boundary=a; boundary=b\n\nx\n`,
    { ...all, unsubscribe: false },
  ],
])("mail that %s is signed once for all, as it is stored", async (_what, mail, tracking) => {
  const { of, bytes } = makeRig(mail);
  const [one, two] = [await of(1, tracking), await of(2, tracking)];
  expect(one.wire.signature).toBe(two.wire.signature);
  const sent = await bytesOf(one.wire);
  expect(sent.subarray(one.wire.signature.length)).toEqual(bytes);
  expect(await verified(sent)).toEqual(["pass"]);
});

test("a page to unsubscribe alone leaves the body as it is stored, of any size", async () => {
  for (const lines of [1, 20_000]) {
    const { of, bytes, rig } = makeRig(`${head}\n${"long text, long text\n".repeat(lines)}`);
    const sent = await bytesOf((await of(1, { opens: false, clicks: false, unsubscribe: true })).wire);
    expect(await verified(sent)).toEqual(["pass"]);
    expect(sent.subarray(sent.indexOf("\r\n\r\n"))).toEqual(bytes.subarray(bytes.indexOf("\r\n\r\n")));
    expect(rig.made).toBe(0);
  }
});

test("a link that the mail's own List-Unsubscribe names is not tracked", async () => {
  const { of } = makeRig(
    `List-Unsubscribe: <mailto:u@ok.test>,\n <https://t.test/out?a=1&b=2>\n${html('<a href="https://t.test/out?a=1&amp;b=2">out</a> <a href="https://t.test/">x</a>')}`,
  );
  const { html: shown } = await PostalMime.parse(
    await bytesOf((await of(1, { ...all, unsubscribe: false })).wire),
  );
  expect(shown).toContain(
    '<a href="https://t.test/out?a=1&amp;b=2">out</a> <a href="https://mail.svc.test/c/',
  );
});

test("links lead to the domain's tracking name once that is seen in the DNS", async () => {
  const record: Omit<DnsRecord, "status"> = {
    purpose: "tracking",
    type: "CNAME",
    name: "links.ok.test",
    value: "mail.svc.test",
    required: false,
    found: [],
    issue: null,
  };
  for (const [status, host] of [
    ["missing", "mail.svc.test"],
    ["ok", "links.ok.test"],
  ] as const) {
    const domain = makeDomain("ok.test", {
      dkimKeys: [makeDkimKey({ privatePem: key.privatePem })],
      trackingDomain: "links.ok.test",
      records: [{ ...record, status }],
    });
    const { of } = makeRig(html('<a href="https://t.test/">x</a>'), domain);
    const sent = (await bytesOf((await of(1)).wire)).toString();
    expect([...new Set([...sent.matchAll(/https:\/\/([^/]+)\/[ocu]\//g)].map(([, name]) => name))]).toEqual([
      host,
    ]);
  }
});

test("HTML that cannot be tracked goes out as it is, and the log says why", async () => {
  const { of, rig, bytes } = makeRig(
    `${head}Content-Type: text/html; charset=x-none\n\n<a href="https://t.test/">x</a>\n`,
  );
  const { wire } = await of(1, { ...all, unsubscribe: false });
  expect((await bytesOf(wire)).subarray(wire.signature.length)).toEqual(bytes);
  expect(rig.told).toEqual([
    { message: "msg_01jdkq4y8z0000000000000001", parts: ['part 0: its charset is "x-none"'] },
  ]);
});

test.each<[string, string, number]>([
  ["that ends within a tag", `${link}<p title="`, 1],
  ["that ends within a comment", `${link}<!-- x`, 1],
  ["that ends within a picture", `${link}<svg>`, 1],
  ["with a tag that is not read to its end", `${link}<p${" x".repeat(1_001)}>${link}`, 1],
  ["whose escapes are not known", `\x1b$(D${link}`, 0],
])("HTML %s has no pixel and no links from there on, and the log says so", async (_what, body, links) => {
  const { of, rig } = makeRig(`${head}Content-Type: text/html; charset=iso-2022-jp\n\n${body}\n`);
  const sent = (await bytesOf((await of(1, { ...all, unsubscribe: false })).wire)).toString();
  expect([sent.split("/c/").length - 1, sent.includes("/o/")]).toEqual([links, false]);
  expect(rig.told).toEqual([
    {
      message: "msg_01jdkq4y8z0000000000000001",
      parts: [
        "part 0: it breaks off, or cannot be read to its end: it has no pixel, and no tracked links behind that",
      ],
    },
  ]);
});

test("an account has its share of the processor, and no more, for messages of many parts too", async () => {
  const page = `--b\nContent-Type: text/html\n\n<a href="https://t.test/">x</a>\n`;
  const { of, rig } = makeRig(
    `${head}Content-Type: multipart/mixed; boundary=b\n\n${page}${"--b\n\n".repeat(60_000)}--b--\n`,
  );
  let made = 0;
  const copyFor = (to: number) => of(to).then(() => (made += 1));
  const first = copyFor(1);
  while (made === 0) await (rig.clock.pending > 0 ? rig.clock.advance(1_000) : settle());
  await first;
  expect(rig.clock.pending).toBe(0);
  const second = copyFor(2);
  await settle();
  expect(rig.clock.pending).toBe(1);
  await rig.clock.advance(60_000);
  await second;
});

/** 49 KB in 7,000 parts. */
const manyParts = (count: number): string =>
  `${head}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<a href="https://t.test/">x</a>\n${"--b\n\n".repeat(count)}--b--\n`;

test("a small message of many parts has that share too", async () => {
  const { of, rig } = makeRig(manyParts(7_000));
  for (let to = 1; to <= 7; to++) await of(to);
  let made = false;
  const eighth = of(8).then(() => (made = true));
  await settle();
  expect([rig.clock.pending, made]).toEqual([1, false]);
  await rig.clock.advance(60_000);
  await eighth;
});

test("an ordinary small message takes nothing of it", async () => {
  const { of, rig } = makeRig(manyParts(300));
  for (let to = 1; to <= 150; to++) await of(to);
  expect(rig.clock.pending).toBe(0);
});

test("nothing is sent for a domain that is gone", async () => {
  const { messages } = makeRig(html("x"), makeDomain("ok.test"));
  expect(
    await messages.of(makeJob(1, { message: makeMessage({ tracking: all, headerLength: 4 }) })),
  ).toBeNull();
});
