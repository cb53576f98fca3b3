import { dkimVerify } from "mailauth";
import { expect, test } from "vitest";
import {
  BodyHasher,
  createSigner,
  dkimRecordValue,
  generateDkimKey,
  type SigningKey,
} from "../../src/mail/dkim.ts";

interface TestKey extends SigningKey {
  record: string;
}

async function makeKey(algorithm: SigningKey["algorithm"], selector: string): Promise<TestKey> {
  const { privatePem, publicKey } = await generateDkimKey(algorithm);
  return {
    domain: "shop.example",
    selector,
    algorithm,
    privatePem,
    record: dkimRecordValue(algorithm, publicKey),
  };
}

const keys = await Promise.all([makeKey("rsa-sha256", "r1"), makeKey("ed25519-sha256", "e1")]);

async function verify(mail: Buffer): Promise<string[]> {
  const resolver = (name: string): Promise<string[][]> => {
    const key = keys.find((one) => name === `${one.selector}._domainkey.shop.example`);
    return Promise.resolve([[key?.record ?? "v=none"]]);
  };
  const { results } = await dkimVerify(mail, { resolver });
  return results.map((one) => `${one.algo} ${one.status.result}`);
}

const header =
  "Received: by mx.shop.example; Fri, 27 Nov 2026 09:15:22 +0000\r\n" +
  "From: Shop  <info@shop.example>\r\nTo: ann@ok.test,\r\n\tbob@ok.test\r\nSubject:  your \t order \r\n" +
  "Message-ID: <1@shop.example>\r\nDate: Fri, 27 Nov 2026 09:15:22 +0000\r\nMIME-Version: 1.0\r\n" +
  "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nReply-To: r@shop.example\r\n" +
  "List-Unsubscribe: <https://shop.example/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" +
  "X-Mailer: svc\r\n\r\n";
const body = "Hello\t Ann, \r\n\r\n  grüße  \r\n\r\n\r\n";

async function sign(section: string, text: string, with_: SigningKey[] = keys): Promise<string> {
  const hasher = new BodyHasher();
  hasher.update(Buffer.from(text));
  const signature = createSigner()({
    headerSection: Buffer.from(section),
    bodyHash: hasher.digest(),
    keys: with_,
    signedAt: Date.UTC(2026, 10, 27, 9, 15, 22, 999),
  });
  return signature.toString("latin1");
}

const both = ["rsa-sha256 pass", "ed25519-sha256 pass"];

test("one call signs with RSA and Ed25519, and both verify", async () => {
  const signature = await sign(header, body);
  expect(await verify(Buffer.from(signature + header + body))).toEqual(both);
});

test.each([
  ["an empty body", header, ""],
  ["a body of empty lines", header, "\r\n\r\n\r\n"],
  ["a UTF-8 header", header.replace("your", "größe"), body],
  ["two fields of a name that is signed", header.replace("X-Mailer", "List-Unsubscribe"), body],
  ["no Subject and no To", header.replace(/^(?:Subject|To): .*\r\n(?:[ \t].*\r\n)*/gm, ""), body],
  ["a space before the colon", header.replace("Reply-To:", "Reply-To :"), body],
])("verifies with %s", async (_, section, text) => {
  expect(await verify(Buffer.from((await sign(section, text)) + section + text))).toEqual(both);
});

test("signs what the reader sees, oversigns From, Subject, To and the ways out of a list, and leaves the rest alone", async () => {
  const [rsa = ""] = (await sign(header, body)).split("DKIM-Signature:").slice(1);
  const tags = rsa.replace(/\s+/g, "");
  expect(tags).toContain("v=1;a=rsa-sha256;c=relaxed/relaxed;d=shop.example;s=r1;t=1795770922;");
  expect(/h=([^;]*);/.exec(tags)?.[1]?.split(":")).toEqual(
    (
      "From Subject To Date Message-ID MIME-Version Content-Type Content-Transfer-Encoding Reply-To " +
      "List-Unsubscribe List-Unsubscribe-Post From Subject To List-Unsubscribe List-Unsubscribe-Post"
    ).split(" "),
  );
});

test.each([
  ["a second From on top", (mail: string) => `From: boss@bank.test\r\n${mail}`],
  ["a second Subject on top", (mail: string) => `Subject: pay\r\n${mail}`],
  ["a second List-Unsubscribe on top", (mail: string) => `List-Unsubscribe: <https://x.test/>\r\n${mail}`],
  ["a second To below", (mail: string) => mail.replace("X-Mailer: svc", "To: all@bank.test")],
  ["another unsubscribe link", (mail: string) => mail.replace("shop.example/u", "evil.test/u")],
  ["another body", (mail: string) => mail.replace("Ann", "Bob")],
])("%s breaks both signatures", async (_, change) => {
  const results = await verify(Buffer.from(change((await sign(header, body)) + header + body)));
  expect(results.filter((one) => one.endsWith(" pass"))).toEqual([]);
});

test("what relays do to relaxed white space breaks neither", async () => {
  const signature = await sign(header, body);
  const relayed = header
    .replace("ann@ok.test,\r\n\tbob", "ann@ok.test,   bob")
    .replace("X-Mailer: svc\r\n", "");
  expect(await verify(Buffer.from(signature + relayed + body.replace("Ann, ", "Ann,")))).toEqual(both);
});

test("the signature field is folded at 78 even for a long domain and a long list", async () => {
  const [rsa] = keys;
  if (rsa === undefined) throw new Error("no key");
  const domain = `${"d".repeat(60)}.${"e".repeat(8)}.example`;
  const signature = await sign(header + "", body, [{ ...rsa, domain }, ...keys]);
  expect(signature.endsWith("\r\n")).toBe(true);
  for (const line of signature.split("\r\n")) expect(line.length).toBeLessThanOrEqual(78 + " d=;".length);
  for (const line of signature.split("\r\n").slice(1, -1)) expect(line).toMatch(/^(?: \S|DKIM-Signature:)/);
});

test("no keys give no field; a broken key is an error, not an unsigned mail", async () => {
  expect(await sign(header, body, [])).toBe("");
  const broken = keys.map((key) => ({
    ...key,
    privatePem: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
  }));
  await expect(sign(header, body, broken)).rejects.toThrow();
});

test("a published key is RSA of 2048 bits or the 32 octets of Ed25519", async () => {
  const [rsa, ed] = keys;
  expect(rsa?.record).toMatch(/^v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A[A-Za-z0-9+/]+=*$/);
  expect(Buffer.from(ed?.record.replace("v=DKIM1; k=ed25519; p=", "") ?? "", "base64")).toHaveLength(32);
});
