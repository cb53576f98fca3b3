// Public ids: a prefix and a ULID of 26 lower-case Crockford characters (48 bits of time, 80 random bits). The random
// bits of every id are fresh, never a counter: an id says nothing about another one, however close in time. Ids of one
// millisecond have no order; lists and cursors go by row ids, which the store gives out in the order of commits.
import { randomFillSync } from "node:crypto";

export const idPrefixes = ["msg", "evt", "req", "whk", "dom", "key", "cred", "acct", "att"] as const;
export type IdPrefix = (typeof idPrefixes)[number];

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const randomBytesPerId = 10;
const pattern = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

export interface IdMint {
  /** `prefix_ulid`, e.g. `msg_01jd…`. */
  (prefix: IdPrefix, nowMs: number): string;
}

/** Random bytes come from a pool, which is filled 256 ids at a time. */
export function createIdMint(): IdMint {
  const pool = Buffer.alloc(randomBytesPerId * 256);
  let used = pool.length;
  let timeMs = -1;
  let time = "";

  return (prefix, nowMs) => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    if (nowMs !== timeMs) {
      timeMs = nowMs;
      time = crockford(nowMs, 10);
    }
    const random = crockford(pool.readUIntBE(used, 5), 8) + crockford(pool.readUIntBE(used + 5, 5), 8);
    used += randomBytesPerId;
    return `${prefix}_${time}${random}`;
  };
}

/** The 16 bytes of an id's ULID. */
export function idBytes(id: string): Uint8Array {
  const ulid = id.slice(id.indexOf("_") + 1);
  if (!pattern.test(ulid)) throw new Error(`no id: ${id}`);
  const bytes = new Uint8Array(16);
  let held = 0;
  let bits = -2; // 26 characters are 130 bits, of which the first two are 0
  let at = 0;
  for (let i = 0; i < 26; i++) {
    held = ((held << 5) | alphabet.indexOf(ulid.charAt(i))) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >>> bits;
    }
  }
  return bytes;
}

/** The id that `idBytes` made them of. */
export function idOfBytes(prefix: IdPrefix, bytes: Uint8Array): string {
  let text = `${prefix}_`;
  let held = 0;
  let bits = 2;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet.charAt((held >>> (bits - 5)) & 31);
  }
  return text;
}

/** True for a string of the form `prefix_ulid`. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && pattern.test(text.slice(prefix.length + 1));
}

function crockford(value: number, length: number): string {
  let rest = value;
  let text = "";
  for (let i = 0; i < length; i++) {
    text = alphabet.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
