// The blocklists as data, and as the configuration and the operator change them.
import { expect, test } from "vitest";
import { codeRangePattern, type NamedZone } from "../../src/model/listing.ts";
import { builtInZones, codeOf, zonesOf } from "../../src/dnsbl/zones.ts";

const named = (zone: string, over: Partial<NamedZone> = {}): NamedZone => ({
  zone,
  name: null,
  codes: null,
  removalUrl: null,
  ...over,
});

test.each(builtInZones)("$zone documents codes with a meaning, and where a removal is asked for", (zone) => {
  expect(zone.zone).toMatch(/^[a-z0-9.-]+$/);
  expect(zone.removalUrl).toMatch(/^https:\/\//);
  expect(zone.codes.length).toBeGreaterThan(0);
  for (const { code, meaning } of zone.codes) {
    expect(code).toMatch(codeRangePattern);
    expect(meaning).not.toBeNull();
  }
});

test("without zones in the configuration the built-in ones are asked, else those alone", () => {
  expect(zonesOf([], []).map(({ zone }) => zone)).toEqual(builtInZones.map(({ zone }) => zone).toSorted());
  expect(zonesOf([named("bl.test")], [])).toMatchObject([
    {
      zone: "bl.test",
      name: "bl.test",
      codes: [{ code: "127.0.0.2-127.0.0.254" }],
      source: "configuration",
    },
  ]);
});

test("what the configuration does not say of a zone is as the program knows it", () => {
  const [zen] = zonesOf([named("zen.spamhaus.org", { name: "ZEN", codes: ["127.0.0.4"] })], []);
  expect(zen).toMatchObject({
    name: "ZEN",
    codes: [{ code: "127.0.0.4", meaning: null }],
    removalUrl: "https://check.spamhaus.org/",
    ipv6: true,
  });
});

test("the operator adds zones to those of the configuration and removes them, for a while too", () => {
  const added = { ...named("b.test"), watched: true };
  expect(zonesOf([named("a.test")], [added]).map(({ zone, source }) => [zone, source])).toEqual([
    ["a.test", "configuration"],
    ["b.test", "added"],
  ]);
  expect(zonesOf([named("a.test")], [{ ...named("a.test"), watched: false }])).toEqual([]);
  const again = { ...named("a.test", { name: "Again" }), watched: true };
  expect(zonesOf([named("a.test", { codes: ["127.0.0.9"] })], [again])).toMatchObject([
    { name: "Again", codes: [{ code: "127.0.0.9" }] },
  ]);
});

test.each([
  ["127.0.0.3", false],
  ["127.0.0.4", true],
  ["127.0.0.7", true],
  ["127.0.0.8", false],
  ["127.0.1.5", false],
  ["127.0.0.20", true],
  ["192.0.2.5", false],
  ["", false],
])("the code %j is documented by a range or a single code: %s", (code, known) => {
  const codes = [
    { code: "127.0.0.4-127.0.0.7", meaning: null },
    { code: "127.0.0.20", meaning: null },
  ];
  expect(codeOf({ codes }, code) !== undefined).toBe(known);
});
