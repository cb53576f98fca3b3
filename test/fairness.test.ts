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
  enter(owner: Owner, count?: number, how?: { endless?: boolean; again?: boolean }): void;
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
    enter(owner, count = 1, { endless = false, again = false } = {}) {
      for (let i = 0; i < count; i++)
        places.enter(
          owner,
          (leave) => {
            made.begun.push(owner);
            made.open.push({ owner, leave });
          },
          endless ? { again } : { again, giveUp: () => void made.givenUp.push(owner) },
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

/** The order in which they are served where there is one slot; the first letter is the owner, `!`: it is tried again. */
function served(names: string[]): string {
  const order: string[] = [];
  const places = createFairSlots({ slots: 1, patienceMs: 200, lingering: 0, clock: new ManualClock() });
  const leaves: (() => void)[] = [];
  for (const name of names) {
    const begin = (leave: () => void): void => {
      order.push(name);
      leaves.push(leave);
    };
    places.enter(name.charAt(0), begin, { again: name.endsWith("!") });
  }
  for (let leave = leaves.shift(); leave; leave = leaves.shift()) leave();
  return order.join(" ");
}

test("owners are served by turns", () => {
  expect(served(["a1", "a2", "a3", "b1", "c1"])).toBe("a1 a2 b1 c1 a3");
});

test("of an owner's own the newest and the oldest are served by turns, and neither waits for what is tried again", () => {
  expect(served(["a0", "a1", "a2", "a3", "a4", "a5"])).toBe("a0 a1 a5 a2 a4 a3");
  expect(served(["a0", "a1!", "a2!", "a3!", "a4", "a5", "a6", "a7"])).toBe("a0 a4 a7 a1! a6 a5 a2! a3!");
});

test("where more of an owner's work hangs than there are slots, its newest goes first seven times of eight", async () => {
  const clock = new ManualClock();
  const places = createFairSlots({ slots: 4, patienceMs: 200, lingering: 1000, clock });
  for (let i = 0; i < 100; i++) places.enter("a", () => undefined);
  await clock.advance(1_000);
  let quick = 0;
  let [before, done] = [0, 0];
  const hang = (): void => void before++;
  for (let i = 0; i < 100; i++) places.enter("a", hang);
  for (let i = 0; i < 70; i++)
    places.enter("a", (leave) => {
      quick++;
      leave();
      done = before;
    });
  await clock.advance(2_000);
  expect(quick).toBe(70);
  expect(done).toBeLessThan(16);
});

test("work that lasts gives its slot to the next", async () => {
  const made = bench(4, 100);
  made.enter("a", 9);
  expect(made.begun).toHaveLength(3);
  await made.clock.advance(400);
  expect(made.begun).toHaveLength(6);
  await made.clock.advance(400);
  expect(made.begun).toHaveLength(9);
  expect(made.givenUp).toEqual([]);
});

test("the oldest that lingers is given up for the next of its owner, never another owner's", async () => {
  const made = bench(40, 4);
  made.enter("other");
  made.enter("greedy", 20);
  await made.clock.advance(400);
  expect(made.givenUp).toEqual(Array(17).fill("greedy"));
  await made.clock.advance(60_000);
  expect(made.givenUp).not.toContain("other");
});

/** How many of the greedy owner's, of which much lingers, are begun in each of 32 steps of 50 ms. */
async function passedOn(again: boolean): Promise<number[]> {
  const made = bench(16, 32);
  made.enter("greedy", 1000, { again });
  await made.clock.advance(2000);
  const steps: number[] = [];
  for (let i = 0; i < 32; i++) {
    const before = made.begun.length;
    await made.clock.advance(50);
    steps.push(made.begun.length - before);
  }
  return steps;
}

const sum = (steps: number[]): number => steps.reduce((total, n) => total + n, 0);

test("slots are not passed on all at once", async () => {
  expect(Math.max(...(await passedOn(false)))).toBeLessThan(6);
  expect(Math.max(...(await passedOn(true)))).toBeLessThan(6);
});

test("where much of an owner's work lingers, what is tried again passes on its slots later, and what is new does not", async () => {
  const [again, fresh] = [sum(await passedOn(true)), sum(await passedOn(false))];
  expect(again).toBeGreaterThan(12);
  expect(again).toBeLessThanOrEqual(48); // twelve slots, 400 ms at least each
  expect(fresh).toBeGreaterThanOrEqual(48); // 400 ms at most each
});

test("work that cannot be given up keeps its slot where there is no place to linger", async () => {
  const made = bench(4, 4);
  made.enter("a", 20, { endless: true });
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
