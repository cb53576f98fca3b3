// API keys as text: `svc_live_` or `svc_test_`, 32 random bytes in base62 and a checksum (CRC32 in
// base62) over all before it, so that a secret scanner recognises a key and a mistyped one is refused
// without a look-up. Only the SHA-256 of the whole is ever stored.
import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256, 62^6 > 2^32. */
const secretLength = 43;
const checksumLength = 6;
const pattern = /^svc_(?:live|test)_[0-9A-Za-z]{49}$/;

export interface FreshSecret {
  value: string;
  /** SHA-256 of the value, 32 bytes. */
  hash: Buffer;
  /** The last four characters, to tell secrets apart. */
  hint: string;
}

export function makeKey(test: boolean): FreshSecret {
  const unchecked = `svc_${test ? "test" : "live"}_${randomBase62()}`;
  return fresh(unchecked + checksum(unchecked));
}

/** A password of 32 random bytes in base62, 43 characters. */
export function makePassword(): FreshSecret {
  return fresh(randomBase62());
}

/** True for text that has a key's form and whose checksum is right; it does not say whether the key exists. */
export function wellFormedKey(text: string): boolean {
  return pattern.test(text) && text.endsWith(checksum(text.slice(0, -checksumLength)));
}

export function hashSecret(value: string): Buffer {
  return createHash("sha256").update(value).digest();
}

function fresh(value: string): FreshSecret {
  return { value, hash: hashSecret(value), hint: value.slice(-4) };
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), checksumLength);
}

function randomBase62(): string {
  return base62(BigInt(`0x${randomBytes(32).toString("hex")}`), secretLength);
}

function base62(value: bigint, length: number): string {
  let rest = value;
  let text = "";
  for (let i = 0; i < length; i++) {
    text = alphabet.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}
