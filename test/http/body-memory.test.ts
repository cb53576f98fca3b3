import { expect, test } from "vitest";
import {
  bodyMemoryRule,
  createBodyMemory,
  type BodyMemory,
  type BodyReservation,
} from "../../src/http/body-memory.ts";
import { ManualClock, settle } from "../support/clock.ts";

const rule = {
  ...bodyMemoryRule,
  small: { totalBytes: 100, shareBytes: 60 },
  large: { totalBytes: 1000, shareBytes: 600 },
  smallBytes: 50,
  growing: 2,
  waitMs: 1000,
  everyMs: 100,
  graceMs: 300,
  withinMs: 5000,
};

/** Asks for room and remembers when it was given. */
function entering(memory: BodyMemory, holder: number, bytes: number | null) {
  const state = { room: null as BodyReservation | null, error: null as unknown };
  const entered = memory.enter(holder, bytes);
  if (!(entered instanceof Promise)) state.room = entered;
  else
    entered.then(
      (room) => (state.room = room),
      (error: unknown) => (state.error = error),
    );
  return state;
}

const given = (...states: { room: BodyReservation | null }[]): boolean[] =>
  states.map(({ room }) => room !== null);

test("a body that fits is let in at once, without a promise or a timer, and the rest waits its turn", async () => {
  const clock = new ManualClock();
  const memory = createBodyMemory(clock, rule);
  const a = entering(memory, 1, 50);
  expect([...given(a), clock.pending, memory.used]).toEqual([true, 0, 50]);
  const [b, c, d] = [entering(memory, 2, 45), entering(memory, 3, 40), entering(memory, 4, 5)];
  await settle();
  expect(given(b, c, d)).toEqual([true, false, true]);
  a.room?.release();
  a.room?.release(); // a second release gives no more room
  await settle();
  expect([...given(c), memory.used]).toEqual([true, 90]);
});

test("large bodies do not delay small ones, of the same account either", async () => {
  const memory = createBodyMemory(new ManualClock(), rule);
  const large = [entering(memory, 1, 500), entering(memory, 1, 500), entering(memory, 2, 400)];
  const small = [entering(memory, 1, 50), entering(memory, 3, 50)];
  await settle();
  expect(given(...large, ...small)).toEqual([true, false, true, true, true]);
});

test("a body larger than its account's share is let in where the account has no other", async () => {
  const memory = createBodyMemory(new ManualClock(), rule);
  const bodies = [entering(memory, 1, 700), entering(memory, 1, 700), entering(memory, 2, 300)];
  await settle();
  expect(given(...bodies)).toEqual([true, false, true]);
});

test("one account holds at most its share, whatever it asks for, and delays no other", async () => {
  const memory = createBodyMemory(new ManualClock(), rule);
  const greedy = Array.from({ length: 50 }, () => entering(memory, 1, 5));
  const others = Array.from({ length: 4 }, () => entering(memory, 2, 10));
  await settle();
  expect(given(...greedy).filter(Boolean)).toHaveLength(12);
  expect(given(...others)).toEqual([true, true, true, true]);
});

test("two accounts that fill the memory cannot keep a third out: the one with the least is next", async () => {
  const memory = createBodyMemory(new ManualClock(), rule);
  const first = Array.from({ length: 60 }, () => entering(memory, 1, 5));
  const second = Array.from({ length: 8 }, () => entering(memory, 2, 5));
  const third = entering(memory, 3, 20);
  for (const n of [0, 1, 2]) {
    first[n]?.room?.release();
    expect(given(entering(memory, 2, 5)), "it holds much: it waits behind the third").toEqual([false]);
  }
  await settle();
  expect(given(third)).toEqual([false]);
  second[0]?.room?.release();
  await settle();
  expect(given(third)).toEqual([true]);
});

test("a body that waits too long is refused with Retry-After, and the ones behind it go on", async () => {
  const clock = new ManualClock();
  const memory = createBodyMemory(clock, rule);
  const first = [entering(memory, 1, 50), entering(memory, 2, 30)];
  const big = entering(memory, 3, 30);
  await clock.advance(500);
  const small = entering(memory, 3, 10);
  expect(given(...first, big, small)).toEqual([true, true, false, false]);
  await clock.advance(500);
  expect(big.error).toMatchObject({ code: "service_overloaded", extras: { retry_after_seconds: 5 } });
  expect(given(small)).toEqual([true]);
});

test("a chunked body takes a little, and a large share once it has grown; several take turns", async () => {
  const memory = createBodyMemory(new ManualClock(), { ...rule, smallBytes: 10 });
  const bodies = [1, 1].map((account) => entering(memory, account, null));
  expect([...given(...bodies), memory.used]).toEqual([true, true, 20]);
  await bodies[0]?.room?.grow();
  expect(memory.used).toBe(610);
  let grown = 0;
  void bodies[1]?.room?.grow().then(() => grown++);
  await settle();
  expect(grown).toBe(0);
  bodies[0]?.room?.release();
  await settle();
  expect([grown, memory.used]).toEqual([1, 600]);
  for (const { room } of bodies) room?.release();
  expect(memory.used).toBe(0);
});

test("chunked bodies of one account that wait for more are few; one more is refused at once", async () => {
  const memory = createBodyMemory(new ManualClock(), { ...rule, smallBytes: 10 });
  const [a, b, c, d] = [1, 1, 1, 1].map((account) => entering(memory, account, null).room);
  await a?.grow();
  const waiting = [b?.grow(), c?.grow()];
  await expect(d?.grow()).rejects.toMatchObject({ code: "service_overloaded" });
  for (const room of [b, c, a, d]) room?.release();
  for (const one of waiting) if (one) await one;
  expect(memory.used).toBe(0);
});

test("bodies too slow to arrive in time are refused, and only while others wait", async () => {
  const clock = new ManualClock();
  const memory = createBodyMemory(clock, rule);
  const refused: string[] = [];
  const reading = (name: string, account: number): BodyReservation => {
    const { room } = entering(memory, account, 50);
    if (!room) throw new Error(`${name} has no room`);
    room.tooSlow = ({ code }) => {
      refused.push(`${name} ${code}`);
      room.release();
    };
    return room;
  };
  reading("slow", 1).received = 10;
  reading("fast", 2).received = 45;
  await clock.advance(2000);
  expect([refused, clock.pending]).toEqual([[], 0]);
  const third = entering(memory, 3, 10);
  await clock.advance(200);
  expect(refused).toEqual(["slow service_overloaded"]);
  expect(given(third)).toEqual([true]);
});
