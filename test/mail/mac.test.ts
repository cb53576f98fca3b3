import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createMac } from "../../src/mail/mac.ts";

test("a MAC is HMAC-SHA256 of purpose and data, for keys and data of any length and in any order", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.uint8Array({ minLength: 60, maxLength: 2_000 }),
  );
  const calls = fc.array(fc.tuple(fc.string({ unit: "grapheme" }), bytes), { maxLength: 8 });
  fc.assert(
    fc.property(bytes, calls, (secret, made) => {
      const mac = createMac(secret);
      for (const [purpose, data] of made) {
        const expected = createHmac("sha256", secret).update(purpose).update(data).digest("hex");
        expect(mac(purpose, data).toString("hex")).toBe(expected);
      }
    }),
  );
});

test("the vector of RFC 4231 §4.3", () => {
  const mac = createMac(Buffer.from("Jefe"));
  expect(mac("what do ya want ", Buffer.from("for nothing?")).toString("hex")).toBe(
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
});
