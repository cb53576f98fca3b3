import { expect, test } from "vitest";
import { createIdMint } from "../../src/ids.ts";
import { createMessageTokens } from "../../src/mail/message-token.ts";
import { returnPathLocal } from "../../src/mail/return-path.ts";

const secret = new Uint8Array(32).fill(3);
const tokens = createMessageTokens(secret);
const id = "msg_01kb3x5n8e7qv2w4y6z8a0b2c4";

test("a token is the ULID and 80 bits that no other can make, and is read in any case", () => {
  const token = tokens.of(id);
  expect(token).toMatch(/^01kb3x5n8e7qv2w4y6z8a0b2c4\.[a-z2-7]{16}$/);
  expect(tokens.read(token)).toBe(id);
  expect(tokens.read(token.toUpperCase())).toBe(id);
  expect(createMessageTokens(new Uint8Array(32).fill(4)).of(id)).not.toBe(token);
});

test("no character of it can be changed, added or taken away", () => {
  const token = tokens.of(id);
  for (let at = 0; at < token.length; at++)
    for (const letter of ["a", "7", "."])
      if (token[at] !== letter)
        expect(tokens.read(token.slice(0, at) + letter + token.slice(at + 1))).toBeNull();
  for (const text of [`${token}a`, token.slice(0, -1), `a${token}`, "", ".", token.slice(0, 26)])
    expect(tokens.read(text)).toBeNull();
});

test("the MAC of a return path is none of a message", () => {
  const local = returnPathLocal(secret, 1, 1);
  expect(tokens.read(`${id.slice(4)}.${local.slice(-16)}`)).toBeNull();
});

test("the tokens of two ids of one millisecond have nothing in common behind their time", () => {
  const mint = createIdMint();
  const [one = "", other = ""] = [0, 1].map(() => tokens.of(mint("msg", 1_764_000_000_000)));
  expect(one.slice(0, 10)).toBe(other.slice(0, 10));
  expect(one.slice(10)).not.toBe(other.slice(10));
});
