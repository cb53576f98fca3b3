import { expect, test } from "vitest";
import { createGate } from "../../src/http/gate.ts";
import { ManualClock, settle } from "../support/clock.ts";

const rule = { totalBytes: 100, waitMs: 1000 };

/** Asks for room and remembers when it was given. */
function entering(gate: ReturnType<typeof createGate>, bytes: number) {
  const state = { release: null as (() => void) | null, error: null as unknown };
  gate.enter(bytes).then(
    (release) => (state.release = release),
    (error: unknown) => (state.error = error),
  );
  return state;
}

test("what fits comes in, the rest waits its turn in order", async () => {
  const gate = createGate(new ManualClock(), rule);
  const [a, b, c, d] = [entering(gate, 60), entering(gate, 60), entering(gate, 30), entering(gate, 10)];
  await settle();
  expect([a, b, c, d].map(({ release }) => release !== null)).toEqual([true, false, false, false]);
  a.release?.();
  a.release?.(); // a second release gives no more room
  await settle();
  expect([b, c, d].map(({ release }) => release !== null)).toEqual([true, true, true]);
});

test("more than there is counts as all of it", async () => {
  const gate = createGate(new ManualClock(), rule);
  const big = entering(gate, 1000);
  await settle();
  expect(big.release).not.toBeNull();
});

test("who waits too long is told to come again, and holds up nobody", async () => {
  const clock = new ManualClock();
  const gate = createGate(clock, rule);
  const first = entering(gate, 80);
  const big = entering(gate, 90);
  await clock.advance(500);
  const small = entering(gate, 20);
  await clock.advance(500);
  expect(big.error).toMatchObject({ code: "service_overloaded", extras: { retry_after_seconds: 5 } });
  expect(small.release).not.toBeNull();
  expect(first.release).not.toBeNull();
});
