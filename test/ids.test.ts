import { expect, test } from "vitest";
import { createIdMint, isId } from "../src/ids.ts";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
/** The 80 random bits of an id. */
const randomOf = (id: string): bigint =>
  Array.from(id.slice(-16)).reduce((sum, letter) => sum * 32n + BigInt(alphabet.indexOf(letter)), 0n);

test("an id is its prefix, the time and 80 random bits", () => {
  const id = createIdMint()("msg", Date.parse("2026-11-27T09:00:00Z"));
  expect(isId("msg", id)).toBe(true);
  expect(id.slice(4, 14)).toBe(createIdMint()("evt", Date.parse("2026-11-27T09:00:00Z")).slice(4, 14));
});

test("the random bits of ids of one millisecond are fresh: no id follows from another", () => {
  const mint = createIdMint();
  const random = Array.from({ length: 5_000 }, () => randomOf(mint("req", 1_764_000_000_000)));
  expect(new Set(random).size).toBe(5_000);
  // A counter would leave gaps of a few; of 80 fresh bits no two neighbours are within 2^40 of each other.
  const gaps = random.slice(1).map((value, n) => value - (random[n] ?? 0n));
  expect(gaps.filter((gap) => (gap < 0n ? -gap : gap) < 2n ** 40n)).toEqual([]);
  // Every bit is set about half of the time, those of a time's low part not excepted.
  for (let bit = 0n; bit < 80n; bit++) {
    const set = random.filter((value) => (value >> bit) & 1n).length;
    expect(set).toBeGreaterThan(2_000);
    expect(set).toBeLessThan(3_000);
  }
});

test("later milliseconds sort behind earlier ones, also when the clock is set back in between", () => {
  const mint = createIdMint();
  const [late, early] = [mint("msg", 2_000), mint("msg", 1_000)];
  expect(early < late).toBe(true);
});
