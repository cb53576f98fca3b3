// The charsets whose markup can be read as octets: where an octet below 128 outside of a character of several octets is
// ASCII, and no such character has `<`, `>`, a quote or an equals sign in it. ISO-2022-JP has, between its escape
// sequences (RFC 1468): there the octets are masked. Of UTF-16, UTF-7 and what is unknown no markup is read.
import { isAscii } from "node:buffer";

export interface Charset {
  label: string;
  decode(bytes: Buffer): string;
}

const escape = 0x1b;
// oxlint-disable no-control-regex
/** Into JIS X 0201 Katakana or JIS X 0208, up to the next escape. */
const wideRun = /\x1b(?:\(I|\$[@B])[^\x1b]*/g;
const otherEscape = /\x1b(?!\([BIJ]|\$[@B])/;
// oxlint-enable no-control-regex
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

/** One character an octet, in which what is not ASCII is not like it; null: readers would not agree on it. */
export function structureOf(bytes: Buffer, { label }: Charset): string | null {
  const text = bytes.toString("latin1");
  if (label !== "iso-2022-jp" || !bytes.includes(escape)) return text;
  if (otherEscape.test(text)) return null;
  return text.replace(wideRun, (run) => "\x80".repeat(run.length));
}
