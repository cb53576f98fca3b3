// Identifiers as they stand at the doors: a prefix and a ULID of 26 lower-case
// Crockford characters (48 bits of time, 80 random bits). Minted in order within a process, so
// that indexes on them grow at one end. Inside the store rows have integer keys.
import { randomFillSync } from "node:crypto";

export const idPrefixes = ["msg", "evt", "req", "whk", "dom", "key", "cred", "acct", "att"] as const;
export type IdPrefix = (typeof idPrefixes)[number];

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const pattern = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

export interface IdMint {
  /** `prefix_ulid`, e.g. `msg_01jd…`. */
  (prefix: IdPrefix, nowMs: number): string;
}

/** A mint of its own order; the program makes one and passes it along. */
export function createIdMint(): IdMint {
  let lastMs = -1;
  let high = 0; // upper 40 random bits
  let low = 0; // lower 40 random bits
  const pool = Buffer.alloc(10 * 256);
  let used = pool.length;

  const refresh = (): void => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    high = pool.readUIntBE(used, 5);
    low = pool.readUIntBE(used + 5, 5);
    used += 10;
  };

  return (prefix, nowMs) => {
    if (nowMs > lastMs) {
      lastMs = nowMs;
      refresh();
    } else if (++low >= 2 ** 40) {
      low = 0;
      high = (high + 1) % 2 ** 40;
    }
    return `${prefix}_${crockford(lastMs, 10)}${crockford(high, 8)}${crockford(low, 8)}`;
  };
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
