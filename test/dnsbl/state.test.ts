// When a look-up changes what is known of an address at a zone.
import { expect, test } from "vitest";
import type { Look } from "../../src/dnsbl/look.ts";
import { afterLook } from "../../src/dnsbl/state.ts";
import type { Listing } from "../../src/model/listing.ts";

const of = { address: "11.22.33.44", zone: "bl.test" };
const looks: Record<string, Look> = {
  L: { answer: "listed", codes: ["127.0.0.2"] },
  n: { answer: "not_listed" },
  u: { answer: "unknown", detail: "timed out", silent: true },
};

/** The changes that a row of look-ups makes, one a time step, each with its step. */
function changesOf(row: string): { changes: string[]; last: Listing | null } {
  let last: Listing | null = null;
  const changes = row.split("").flatMap((letter, step) => {
    const look = looks[letter];
    if (!look) throw new Error(`no look ${letter}`);
    const after = afterLook(last, of, look, step);
    last = after.listing;
    return after.change === null ? [] : [`${after.change} ${step}`];
  });
  return { changes, last };
}

test.each([
  ["L", []],
  ["LL", ["listed 1"]],
  ["LLLL", ["listed 1"]],
  ["LnLnLn", []],
  ["nLL", ["listed 2"]],
  ["LLn", ["listed 1"]],
  ["LLnn", ["listed 1", "delisted 3"]],
  ["LLnLnL", ["listed 1"]],
  ["LLnnLL", ["listed 1", "delisted 3", "listed 5"]],
  ["uuuu", []],
  ["LuL", ["listed 2"]],
  ["LLunun", ["listed 1", "delisted 5"]],
  [`LL${"u".repeat(100)}`, ["listed 1"]],
])("the look-ups %s change %j", (row, changes) => {
  expect(changesOf(row).changes).toEqual(changes);
});

test("a listing counts from the first look-up that found it, and keeps its codes while the zone is silent", () => {
  expect(changesOf("nLLu").last).toEqual({
    ...of,
    answer: "unknown",
    detail: "timed out",
    lookedAt: 3,
    codes: ["127.0.0.2"],
    reason: null,
    listedAt: 1,
    changedAt: null,
  });
});
