// Whole numbers in few bytes: seven bits a byte, the lowest first; the eighth bit says that more follow.

/** Appends `value`, a safe integer of 0 and up. */
export function writeVarint(into: number[], value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`no store key: ${value}`);
  let rest = value;
  while (rest >= 128) {
    into.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  into.push(rest);
}

/** The number that begins at `from`, and where it ends; null where there is none. */
export function readVarint(bytes: Uint8Array, from: number): { value: number; next: number } | null {
  let value = 0;
  for (let i = 0; i < 8; i++) {
    const byte = bytes[from + i];
    if (byte === undefined) return null;
    value += (byte & 127) * 128 ** i;
    if (byte < 128) return Number.isSafeInteger(value) ? { value, next: from + i + 1 } : null;
  }
  return null;
}
