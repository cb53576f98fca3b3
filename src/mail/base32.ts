// Base32 in lower case (RFC 4648 §6) without padding: what survives mail servers that change the case of a local part.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

export function base32(bytes: Uint8Array): string {
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet.charAt((held >>> (bits - 5)) & 31);
    held &= 31;
  }
  return bits > 0 ? text + alphabet.charAt((held << (5 - bits)) & 31) : text;
}

/** Null for a text with other characters than those of the alphabet. Bits that do not fill a byte are dropped. */
export function fromBase32(text: string): Uint8Array | null {
  const bytes: number[] = [];
  let held = 0;
  let bits = 0;
  for (const letter of text) {
    const five = alphabet.indexOf(letter);
    if (five < 0) return null;
    held = (held << 5) | five;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((held >>> bits) & 255);
    }
    held &= 255;
  }
  return Uint8Array.from(bytes);
}
