import fc from "fast-check";
import { expect, test } from "vitest";
import { createTimeHeap } from "../../src/queue/heap.ts";

test("gives keys back in the order of their times, whatever the order they came in", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string({ maxLength: 2 }), fc.nat(1000))), (entries) => {
      const heap = createTimeHeap();
      const earliest = new Map<string, number>();
      for (const [key, at] of entries) {
        heap.push(key, at);
        earliest.set(key, Math.min(at, earliest.get(key) ?? Infinity));
      }
      const out: number[] = [];
      for (let key = heap.popDue(1000); key !== null; key = heap.popDue(1000))
        out.push(earliest.get(key) ?? -1);
      expect(out).toEqual([...earliest.values()].toSorted((a, b) => a - b));
      expect(heap.size).toBe(0);
    }),
  );
});

test("keeps a key once, at its earliest time", () => {
  const heap = createTimeHeap();
  heap.push("queueName", 50);
  heap.push("queueName", 10);
  heap.push("queueName", 90);
  expect(heap.peek()).toBe(10);
  expect(heap.popDue(9)).toBeNull();
  expect(heap.popDue(10)).toBe("queueName");
  expect(heap.popDue(1000)).toBeNull();
});

test("a key that was taken may come back later", () => {
  const heap = createTimeHeap();
  heap.push("queueName", 10);
  heap.popDue(10);
  heap.push("queueName", 20);
  expect(heap.peek()).toBe(20);
});
