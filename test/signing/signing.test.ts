import { afterEach, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { createSigner, generateDkimKey } from "../../src/mail/dkim.ts";
import type { SigningKey, SignInput } from "../../src/mail/dkim.ts";
import { createSigning } from "../../src/signing/signing.ts";
import type { Signing } from "../../src/signing/signing.ts";

let signing: Signing;
afterEach(() => signing.stop());

const keyOf = async (algorithm: SigningKey["algorithm"]): Promise<SigningKey> => ({
  domain: "shop.example",
  selector: algorithm.slice(0, 3),
  algorithm,
  privatePem: (await generateDkimKey(algorithm)).privatePem,
});

function inputOf(n: number, keys: SigningKey[]): SignInput {
  const section = `From: a@shop.example\r\nTo: b@x.test\r\nSubject: ${n} grüße\r\n\r\n`;
  return { headerSection: Buffer.from(section), bodyHash: Buffer.alloc(32, n), keys, signedAt: n * 1000 };
}

test("many headers at once are each signed as the signer itself would, in whatever batch they went", async () => {
  signing = createSigning(silentLog);
  const keys = [await keyOf("rsa-sha256"), await keyOf("ed25519-sha256")];
  const inputs = Array.from({ length: 50 }, (_, n) => inputOf(n, keys));
  const signed = await Promise.all(inputs.map((input) => signing.signHeader(input)));
  const sign = createSigner();
  expect(signed.map(String)).toEqual(inputs.map((input) => String(sign(input))));
});

test("a key that cannot be read fails its own signature, and no other of the batch", async () => {
  signing = createSigning(silentLog);
  const good = await keyOf("ed25519-sha256");
  const [first, second, third] = await Promise.allSettled([
    signing.signHeader(inputOf(1, [good])),
    signing.signHeader(inputOf(2, [{ ...good, privatePem: "no key" }])),
    signing.signHeader(inputOf(3, [good])),
  ]);
  expect([first.status, second.status, third.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a stop rejects what waits for a signature, at the thread and before it", async () => {
  signing = createSigning(silentLog);
  const key = await keyOf("rsa-sha256");
  const waiting = Array.from({ length: 400 }, (_, n) => signing.signHeader(inputOf(n, [key])));
  const ends = Promise.allSettled(waiting);
  await waiting[0]; // the thread has its next batches
  await signing.stop();
  expect(new Set((await ends).map(({ status }) => status))).toContain("rejected");
  await expect(signing.signHeader(inputOf(1, [key]))).rejects.toThrow("stops");
});
