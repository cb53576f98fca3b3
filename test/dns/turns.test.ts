import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "../../src/dns/turns.ts";

test("pieces of work that come at once run in their order, one a turn of the loop", async () => {
  const turns = createTurns();
  const ran: number[] = [];
  for (let i = 0; i < 5; i++) turns(() => ran.push(i));
  expect(ran).toEqual([]);
  for (let i = 0; i < 5; i++) {
    await turn();
    expect(ran.length).toBeLessThanOrEqual(i + 1);
  }
  while (ran.length < 5) await turn();
  expect(ran).toEqual([0, 1, 2, 3, 4]);
});

test("work that brings more runs before it", async () => {
  const turns = createTurns();
  const ran: string[] = [];
  turns(() => {
    ran.push("first");
    turns(() => ran.push("third"));
  });
  turns(() => ran.push("second"));
  while (ran.length < 3) await turn();
  expect(ran).toEqual(["first", "second", "third"]);
});
