import { expect, test } from "vitest";
import { createAttemptSlots, type SlotUser } from "../../src/queue/attempt-slots.ts";
import { ManualClock } from "../support/clock.ts";

const queueOf = (account: number): SlotUser => ({ account, taken: 0, movedAt: null });
const most = 100;
const clock = new ManualClock();
type Slots = ReturnType<typeof createAttemptSlots<SlotUser>>;

/** Takes a slot for each of new ready queues of the account until there is no room. */
function fill(slots: Slots, account: number): SlotUser[] {
  const users: SlotUser[] = [];
  for (let i = 0; i <= most; i++) {
    const user = queueOf(account);
    if (slots.room(user, 1) === 0) return users;
    slots.take(user);
    users.push(user);
  }
  throw new Error("the slots have no limit");
}

test("an account alone has three quarters of the slots, and one that comes later finds some", () => {
  const slots = createAttemptSlots(clock, most);
  expect(fill(slots, 1)).toHaveLength(75);
  expect(fill(slots, 2).length).toBeGreaterThan(15);
  expect(fill(slots, 3).length).toBeGreaterThan(3);
});

test("past half of the slots a ready queue holds at most two", () => {
  const slots = createAttemptSlots(clock, most);
  const greedy = queueOf(1);
  expect(slots.room(greedy, 10)).toBe(10);
  for (let i = 0; i < 51; i++) slots.take(queueOf(1));
  const late = queueOf(1);
  expect(slots.room(late, 10)).toBe(2);
  slots.take(late);
  slots.take(late);
  expect(slots.room(late, 10)).toBe(0);
});

test("past half of the slots a ready queue whose server answers may have what it wants, until it hangs or too few are left", async () => {
  const slots = createAttemptSlots(clock, most);
  const healthy = queueOf(1);
  slots.take(healthy);
  for (let i = 0; i < 52; i++) slots.take(queueOf(1));
  expect(slots.room(healthy, 10)).toBe(1);
  slots.leave(healthy, true);
  expect(slots.room(healthy, 10)).toBe(10);
  await clock.advance(2_000);
  expect(slots.room(healthy, 10)).toBe(2);
  slots.take(healthy);
  slots.leave(healthy, false);
  expect(slots.room(healthy, 10)).toBe(2);
  slots.take(healthy);
  slots.leave(healthy, true);
  for (let i = 0; i < 11; i++) slots.take(queueOf(1));
  expect(slots.room(healthy, 10)).toBe(2);
});

test("a freed slot runs a ready queue that found none, of the account that may have it", () => {
  const slots = createAttemptSlots(clock, most);
  const [first] = fill(slots, 1);
  const waits = queueOf(1);
  expect(slots.room(waits, 1)).toBe(0);
  const run: SlotUser[] = [];
  slots.runWaiting((user) => run.push(user));
  expect(run).toEqual([]);
  if (first) slots.leave(first, true);
  // The queue whose try ended the filling was noted before this one.
  slots.runWaiting((user) => {
    run.push(user);
    if (slots.room(user, 1) > 0) slots.take(user);
  });
  expect(run).toHaveLength(1);
  if (run[0]) slots.leave(run[0], true);
  slots.runWaiting((user) => run.push(user));
  expect(run.at(-1)).toBe(waits);
});

test("thousands of ready queues of one account cost a freed slot of another sixteen looks, and all come to their turn", () => {
  const slots = createAttemptSlots(clock, most);
  const held = fill(slots, 1);
  const waiting = Array.from({ length: 3_000 }, () => queueOf(1));
  for (const user of waiting) slots.room(user, 1);
  const ran = new Map<SlotUser, number>();
  const runAll = (): number => {
    let looks = 0;
    slots.runWaiting((user) => {
      looks++;
      ran.set(user, (ran.get(user) ?? 0) + 1);
    });
    return looks;
  };
  const other = queueOf(2);
  slots.take(other);
  slots.leave(other, true);
  expect(runAll()).toBe(0);
  const [first] = held;
  if (first) slots.leave(first, true);
  while (runAll() > 0) continue;
  expect(waiting.every((user) => ran.get(user) === 1)).toBe(true);
});

test("with nothing under way all that wait are run, since no slot will be freed after", () => {
  const slots = createAttemptSlots(clock, most);
  const held = fill(slots, 1);
  const waiting = Array.from({ length: 40 }, () => queueOf(1));
  for (const user of waiting) slots.room(user, 1);
  for (const user of held) slots.leave(user, true);
  const ran = new Set<SlotUser>();
  slots.runWaiting((user) => ran.add(user));
  expect(waiting.every((user) => ran.has(user))).toBe(true);
});

test("while slots are few, accounts that wait have them by turns", () => {
  const slots = createAttemptSlots(clock, most);
  const held: SlotUser[] = [];
  // Each of so many accounts has so little that any of them may have what is freed.
  for (let account = 1; account <= most; account++) {
    const user = queueOf(account);
    slots.take(user);
    held.push(user);
  }
  const waiting = [201, 202, 203].flatMap((account) => [1, 2, 3, 4].map(() => queueOf(account)));
  for (const user of waiting) expect(slots.room(user, 1)).toBe(0);
  const ran: unknown[] = [];
  for (const user of held.slice(0, 6)) {
    slots.leave(user, true);
    slots.runWaiting((next) => {
      if (slots.room(next, 1) === 0) return;
      slots.take(next);
      ran.push(next.account);
    });
  }
  expect(ran).toEqual([201, 202, 203, 201, 202, 203]);
});
