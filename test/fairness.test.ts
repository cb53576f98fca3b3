import { expect, test } from "vitest";
import { createFairSlots, type Owner } from "../src/fairness.ts";
import { Fifo } from "../src/fairness/fifo.ts";
import { ManualClock } from "./support/clock.ts";

interface Bench {
  clock: ManualClock;
  /** Begun and not ended, with how to end each. */
  open: { owner: Owner; leave: () => void }[];
  begun: Owner[];
  givenUp: Owner[];
  enter(owner: Owner, count?: number, endless?: boolean): void;
  of(owner: Owner): number;
}

function bench(slots: number, lingering = 0): Bench {
  const clock = new ManualClock();
  const places = createFairSlots({ slots, patienceMs: 200, lingering, clock });
  const made: Bench = {
    clock,
    open: [],
    begun: [],
    givenUp: [],
    enter(owner, count = 1, endless = false) {
      for (let i = 0; i < count; i++)
        places.enter(
          owner,
          (leave) => {
            made.begun.push(owner);
            made.open.push({ owner, leave });
          },
          endless ? undefined : () => void made.givenUp.push(owner),
        );
    },
    of: (owner) => made.open.filter((each) => each.owner === owner).length,
  };
  return made;
}

test("an owner takes three quarters at most, and another finds room at once", () => {
  const made = bench(16);
  made.enter("greedy", 100);
  expect(made.of("greedy")).toBe(12);
  made.enter("other");
  expect(made.of("other")).toBe(1);
});

test("however many owners take all that they may, one more has its turn as soon as a slot is free", () => {
  const made = bench(16);
  for (let owner = 0; owner < 50; owner++) made.enter(owner, 100);
  expect(made.open).toHaveLength(16);
  made.enter("late");
  const before = new Set(made.begun).size;
  for (let i = 0; i < 60 && made.of("late") === 0; i++) made.open.shift()?.leave();
  expect(made.of("late")).toBe(1);
  expect(new Set(made.begun).size, "by turns").toBe(51);
  expect(before).toBeLessThan(51);
});

test("those that wait are served by turns, an owner's own in their order", () => {
  const order: string[] = [];
  const places = createFairSlots({ slots: 1, patienceMs: 200, lingering: 0, clock: new ManualClock() });
  const leaves: (() => void)[] = [];
  for (const [owner, name] of ["a1", "a2", "a3", "b1", "b2", "c1"].map((each) => [each.charAt(0), each]))
    places.enter(owner ?? "", (leave) => {
      order.push(name ?? "");
      leaves.push(leave);
    });
  for (let leave = leaves.shift(); leave; leave = leaves.shift()) leave();
  expect(order).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
});

test("work that lasts gives its slot to the next", async () => {
  const made = bench(4, 100);
  made.enter("a", 9);
  expect(made.begun).toHaveLength(3);
  await made.clock.advance(200);
  expect(made.begun).toHaveLength(6);
  await made.clock.advance(200);
  expect(made.begun).toHaveLength(9);
  expect(made.givenUp).toEqual([]);
});

test("the oldest that lingers is given up for the next of its owner, never another owner's", async () => {
  const made = bench(40, 4);
  made.enter("other");
  made.enter("greedy", 20);
  await made.clock.advance(200);
  expect(made.givenUp).toEqual(Array(17).fill("greedy"));
  await made.clock.advance(60_000);
  expect(made.givenUp).not.toContain("other");
});

test("where much of an owner's work lingers, its slots are passed on later, and not all at once", async () => {
  const made = bench(16, 32);
  made.enter("greedy", 1000);
  await made.clock.advance(2000);
  const steps: number[] = [];
  for (let i = 0; i < 32; i++) {
    const before = made.begun.length;
    await made.clock.advance(50);
    steps.push(made.begun.length - before);
  }
  const passedOn = steps.reduce((sum, n) => sum + n, 0);
  expect(passedOn).toBeGreaterThan(12);
  expect(passedOn).toBeLessThanOrEqual(48); // twelve slots, 400 ms at least each
  expect(Math.max(...steps)).toBeLessThan(12);
});

test("work that cannot be given up keeps its slot where there is no place to linger", async () => {
  const made = bench(4, 4);
  made.enter("a", 20, true);
  for (let i = 0; i < 10; i++) await made.clock.advance(200);
  expect(made.begun).toHaveLength(6);
  for (const { leave } of made.open) leave();
  expect(made.begun.length).toBeGreaterThan(8);
});

test("to leave twice gives back one slot", () => {
  const made = bench(2);
  made.enter("a", 5);
  const [first] = made.open;
  first?.leave();
  first?.leave();
  expect(made.begun).toHaveLength(3 - 1 + 1);
});

test("what has ended leaves no timer behind", () => {
  const made = bench(8);
  made.enter("a", 3);
  for (const { leave } of made.open) leave();
  expect(made.clock.pending).toBe(0);
});

test("a long list is the same list", () => {
  const list = new Fifo<number>();
  const seen: (number | undefined)[] = [];
  for (let i = 0; i < 10_000; i++) {
    list.push(i);
    if (i % 3 === 0) seen.push(list.shift());
  }
  while (list.size > 0) seen.push(list.shift());
  expect(seen).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
  expect(list.shift()).toBeUndefined();
});
