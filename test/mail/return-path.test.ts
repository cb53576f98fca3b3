import fc from "fast-check";
import { expect, test } from "vitest";
import { parseAddress } from "../../src/mail/address.ts";
import { readReturnPathLocal, returnPathLocal } from "../../src/mail/return-path.ts";

const secret = Buffer.from("a secret of this host");
const key = fc.oneof(fc.nat(1_000), fc.maxSafeNat());

test("names its recipient in any case, in a local part of at most 64 octets", () => {
  fc.assert(
    fc.property(key, key, (messageKey, recipientKey) => {
      const local = returnPathLocal(secret, messageKey, recipientKey);
      expect(local).toMatch(/^b\+[a-z2-7]{1,62}$/);
      expect(parseAddress(`${local}@bounce.shop.example`).ok).toBe(true);
      expect(readReturnPathLocal(secret, local)).toEqual({ messageKey, recipientKey });
      expect(readReturnPathLocal(secret, local.toUpperCase())).toEqual({ messageKey, recipientKey });
    }),
  );
});

test("a token with any character changed, cut or added is refused", () => {
  const local = returnPathLocal(secret, 70_000, 1_000_000);
  for (let i = 0; i < local.length; i++) {
    for (const letter of "abcdefghijklmnopqrstuvwxyz234567-+") {
      if (letter !== local[i]) {
        expect(readReturnPathLocal(secret, local.slice(0, i) + letter + local.slice(i + 1))).toBeNull();
      }
    }
    expect(readReturnPathLocal(secret, local.slice(0, i))).toBeNull();
    expect(readReturnPathLocal(secret, `${local.slice(0, i)}a${local.slice(i)}`)).toBeNull();
  }
});

test("another host's secret, a random token and garbage are refused", () => {
  expect(readReturnPathLocal(Buffer.from("other"), returnPathLocal(secret, 1, 2))).toBeNull();
  expect(readReturnPathLocal(secret, `b+${"a".repeat(62)}`)).toBeNull();
  fc.assert(fc.property(fc.string(), (text) => readReturnPathLocal(secret, `b+${text}`) === null));
  expect(readReturnPathLocal(secret, `b+${"a".repeat(1_000_000)}`)).toBeNull();
});

test("a key that no store gives out is a bug", () => {
  for (const bad of [-1, 1.5, Number.NaN, 2 ** 53])
    expect(() => returnPathLocal(secret, bad, 1)).toThrow("no store key");
});
