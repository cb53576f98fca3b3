import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "../../src/fairness/turns.ts";
import { ManualClock } from "../support/clock.ts";

test("pieces of work that come at once run in their order, one each eight milliseconds", async () => {
  const clock = new ManualClock();
  const turns = createTurns({ clock, pieces: 1, everyMs: 8 });
  const ran: number[] = [];
  for (let n = 0; n < 3; n++) turns(1, () => ran.push(n));
  await turn();
  expect(ran).toEqual([0]);
  await clock.advance(7);
  expect(ran).toEqual([0]);
  await clock.advance(1);
  expect(ran).toEqual([0, 1]);
  await clock.advance(8);
  expect(ran).toEqual([0, 1, 2]);
});

test("owners take turns, and one that comes late waits for a single piece of another's", async () => {
  const clock = new ManualClock();
  const turns = createTurns({ clock, pieces: 1, everyMs: 8 });
  const ran: string[] = [];
  for (let n = 0; n < 100; n++) turns("greedy", () => ran.push("greedy"));
  await turn();
  turns("other", () => ran.push("other"));
  await clock.advance(16);
  expect(ran).toEqual(["greedy", "greedy", "other"]);
});

test("work that brings more runs before it, and after a rest there is no wait", async () => {
  const clock = new ManualClock();
  const turns = createTurns({ clock, pieces: 1, everyMs: 8 });
  const ran: string[] = [];
  turns(1, () => {
    ran.push("first");
    turns(1, () => ran.push("brought"));
  });
  turns(1, () => ran.push("second"));
  await turn();
  await clock.advance(20);
  expect(ran).toEqual(["first", "second", "brought"]);
  await clock.advance(8);
  turns(1, () => ran.push("later"));
  await turn();
  expect(ran.at(-1)).toBe("later");
});

test("several pieces run in a turn of the loop where they may, the others in the next ones", async () => {
  const turns = createTurns({ clock: new ManualClock(), pieces: 3, everyMs: 0 });
  const ran: string[] = [];
  for (let n = 0; n < 7; n++) turns("greedy", () => ran.push("greedy"));
  await turn();
  expect(ran).toHaveLength(3);
  turns("other", () => ran.push("other"));
  await turn();
  expect(ran.slice(3)).toEqual(["greedy", "other", "greedy"]);
  await turn();
  expect(ran).toHaveLength(8);
});

test("work that had nothing to do gives its place to the next", async () => {
  const clock = new ManualClock();
  const turns = createTurns({ clock, pieces: 1, everyMs: 8 });
  const ran: string[] = [];
  for (let n = 0; n < 50; n++) turns("gave up", () => false);
  turns("gave up", () => ran.push("own"));
  turns("other", () => ran.push("other"));
  await turn();
  expect(ran).toEqual(["other"]);
  await clock.advance(8);
  expect(ran).toEqual(["other", "own"]);
});
