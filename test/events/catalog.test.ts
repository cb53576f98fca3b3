import { expect, test } from "vitest";
import { eventCatalog, eventTypes } from "../../src/events/catalog.ts";
import { countersMask, countingOf } from "../../src/events/counted.ts";
import type { CountedData, EventCatalog } from "../../src/events/entry.ts";
import { eventMask, eventTypesOf, isEveryType } from "../../src/events/subscriptions.ts";
import { counterNames } from "../../src/model/counters.ts";

const entries: EventCatalog = eventCatalog;

test("every type has a bit of its own, within the 31 that a mask can hold", () => {
  const bits = Object.values(entries).map(({ bit }) => bit);
  expect(new Set(bits).size).toBe(bits.length);
  for (const bit of bits) expect([Number.isInteger(Math.log2(bit)), bit < 2 ** 31]).toEqual([true, true]);
});

test.each(eventTypes)("a subscription to %s alone holds this type alone", (type) => {
  expect(eventTypesOf(eventMask([type]))).toEqual([type]);
  expect(eventTypesOf(eventMask([type, type]))).toEqual([type]);
  expect(isEveryType(eventMask([type]))).toBe(false);
});

test("a subscription to every type is distinguished from one that names them all", () => {
  for (const names of [undefined, ["*"], ["message.bounced", "*"]] as const) {
    expect(eventTypesOf(eventMask(names))).toEqual(eventTypes);
    expect(isEveryType(eventMask(names))).toBe(true);
  }
  expect(eventTypesOf(eventMask(eventTypes))).toEqual(eventTypes);
  expect(isEveryType(eventMask(eventTypes))).toBe(false);
});

const raised = (type: string, data: CountedData = {}): string[] => {
  const entry = entries[type];
  if (!entry) throw new Error(`${type} is not in the catalogue`);
  const mask = countersMask(countingOf(entry), data);
  return counterNames.filter((_, place) => (mask & (1 << place)) !== 0);
};

test.each<[string, CountedData, string[]]>([
  ["message.delivered", {}, ["delivered"]],
  ["message.deferred", {}, ["deferred"]],
  ["message.bounced", { bounceType: "hard" }, ["bounced", "bouncedHard"]],
  ["message.bounced", { bounceType: "soft" }, ["bounced", "bouncedSoft"]],
  ["message.bounced", { bounceType: "undetermined" }, ["bounced"]],
  ["message.complained", { confirmed: true }, ["complained"]],
  ["message.complained", { confirmed: false }, ["complained", "complainedUnconfirmed"]],
  ["message.unsubscribed", {}, ["unsubscribed"]],
  ["message.opened", { first: true, machine: false }, ["opened", "uniqueOpened"]],
  ["message.opened", { first: true, machine: true }, ["opened"]],
  ["message.clicked", { first: true, machine: false }, ["clicked", "uniqueClicked"]],
  ["message.clicked", { first: false }, ["clicked"]],
  ["ip.blacklisted", {}, []],
  ["ip.delisted", {}, []],
])("%s of %j raises %j", (type, data, counters) => {
  expect(raised(type, data)).toEqual(counters);
});
