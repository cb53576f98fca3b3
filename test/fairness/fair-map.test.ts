import { expect, test } from "vitest";
import { createFairMap } from "../../src/fairness/fair-map.ts";

test("a full map forgets the oldest entry of the owner with the most", () => {
  const map = createFairMap<string>(4);
  map.set(1, "a", "first");
  for (const key of ["b", "c", "d", "e", "f"]) map.set(2, key, key);
  expect(["a", "b", "c", "d", "e", "f"].map((key) => map.get(key))).toEqual([
    "first",
    undefined,
    undefined,
    "d",
    "e",
    "f",
  ]);
});

test("an entry that is set again is its new owner's, and the newest", () => {
  const map = createFairMap<number>(3);
  map.set(1, "a", 1);
  map.set(1, "b", 1);
  map.set(2, "a", 2);
  map.set(2, "c", 2);
  map.set(2, "d", 2);
  expect(["a", "b", "c", "d"].map((key) => map.get(key))).toEqual([undefined, 1, 2, 2]);
});

test("sizes are what is bounded; what is larger than all is not taken and takes nothing away", () => {
  const map = createFairMap<number>(10);
  map.set(1, "a", 1, 4);
  map.set(2, "b", 2, 6);
  map.set(2, "c", 2, 5);
  expect(["a", "b", "c"].map((key) => map.get(key))).toEqual([1, undefined, 2]);
  map.set(1, "huge", 1, 11);
  expect(["a", "c", "huge"].map((key) => map.get(key))).toEqual([1, 2, undefined]);
});

test("what is deleted or cleared makes room", () => {
  const map = createFairMap<number>(2);
  map.set(1, "a", 1);
  map.set(1, "b", 1);
  map.delete("a");
  map.set(1, "c", 1);
  expect(["b", "c"].map((key) => map.get(key))).toEqual([1, 1]);
  map.clear();
  map.set(1, "d", 1);
  map.set(1, "e", 1);
  expect(["b", "d", "e"].map((key) => map.get(key))).toEqual([undefined, 1, 1]);
});
