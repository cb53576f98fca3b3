// The secret of an endpoint: 64 printable ASCII characters of 6 random bits each. Their bytes, as they are shown, are the
// HMAC key (signature.ts).
import { randomInt } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
export const secretLength = 64;

export function newSecret(): string {
  return Array.from({ length: secretLength }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}
