// The charsets whose markup can be read as octets: where an octet below 128 outside of a character of several octets is
// ASCII, and no such character has `<`, `>`, a quote or an equals sign in it. ISO-2022-JP has, between its escape
// sequences (RFC 1468): there the octets are masked. Of UTF-16, UTF-7 and what is unknown no markup is read.
import { isAscii } from "node:buffer";

export interface Charset {
  label: string;
  decode(bytes: Buffer): string;
}

const escape = 0x1b;
/** Behind an escape: ASCII or JIS X 0201 Roman; what is not like it, up to the next escape (JIS X 0201 Katakana, JIS X 0208). */
const plainSets = new Set(["(B", "(J"]);
const wideSets = new Set(["(I", "$@", "$B"]);
/** Octets that are masked between two turns. */
const sliceOctets = 16_384;
const stateless =
  /^(?:utf-8|ibm866|iso-8859-\d+|iso-8859-8-i|koi8-[ru]|macintosh|windows-\d+|x-mac-cyrillic|gbk|gb18030|big5|euc-jp|euc-kr|shift_jis)$/;

/** Null where its markup cannot be read. `label`: as the part names it, empty where it does not. */
export function htmlCharset(label: string): Charset | null {
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(label === "" ? "utf-8" : label, { ignoreBOM: true });
  } catch {
    return null;
  }
  const { encoding } = decoder;
  if (encoding !== "iso-2022-jp" && !stateless.test(encoding)) return null;
  return {
    label: encoding,
    decode: (bytes) => (isPlain(bytes, encoding) ? bytes.toString("latin1") : decoder.decode(bytes)),
  };
}

function isPlain(bytes: Buffer, encoding: string): boolean {
  return isAscii(bytes) && (encoding !== "iso-2022-jp" || !bytes.includes(escape));
}

/** One character an octet, in which what is not ASCII is not like it; null: readers would not agree on it. Yields between slices. */
export function* structureOf(bytes: Buffer, { label }: Charset): Generator<undefined, string | null> {
  if (label !== "iso-2022-jp" || !bytes.includes(escape)) return bytes.toString("latin1");
  const masked = Buffer.from(bytes);
  let next = sliceOctets;
  for (let at = bytes.indexOf(escape); at >= 0;) {
    const set = bytes.toString("latin1", at + 1, at + 3);
    if (!plainSets.has(set) && !wideSets.has(set)) return null;
    const end = bytes.indexOf(escape, at + 1);
    if (wideSets.has(set)) masked.fill(0x80, at, end < 0 ? bytes.length : end);
    at = end;
    if (at < next) continue;
    yield undefined;
    next = at + sliceOctets;
  }
  return masked.toString("latin1");
}
