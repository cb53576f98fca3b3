// Who gets a slot when they are scarce: counted on a clock that the test moves.
import { expect, test } from "vitest";
import { createSessionLimiter, sharesBeforeLogin } from "../../src/relay/session-limiter.ts";
import type { SessionLimiter, SessionLimits, Slot } from "../../src/relay/session-limiter.ts";
import { ManualClock } from "../support/clock.ts";

interface Rig {
  clock: ManualClock;
  limiter: SessionLimiter;
  /** Names of the sessions that lost their slot, in order. */
  evicted: string[];
  enter(ip: string, name?: string): Slot | null;
}

function rig(limits: Partial<SessionLimits> = {}): Rig {
  const clock = new ManualClock();
  const evicted: string[] = [];
  const limiter = createSessionLimiter(
    {
      total: 8,
      perSource: 4,
      unidentified: 6,
      unidentifiedFirst: limits.unidentified ?? 6,
      grace: { largest: 2_000, any: 10_000 },
      ...limits,
    },
    clock,
  );
  return {
    clock,
    limiter,
    evicted,
    enter: (ip, name = ip) => limiter.enter(ip, () => void evicted.push(name)),
  };
}

const entered = (slot: Slot | null): Slot => {
  if (!slot) throw new Error("a limit was met");
  return slot;
};

test("sessions without a login have three quarters of the slots; the others are for those who log in", () => {
  expect([1, 2, 3, 4, 1_000].map((total) => sharesBeforeLogin(total).unidentified)).toEqual([
    1, 1, 2, 3, 750,
  ]);
  const { enter } = rig();
  const first = entered(enter("192.0.2.1"));
  for (let i = 2; i <= 6; i++) entered(enter(`192.0.2.${i}`));
  expect(enter("192.0.2.7")).toBeNull();
  first.identify(1);
  for (const last of [7, 8]) {
    const slot = enter(`192.0.2.${last}`);
    if (last === 7) expect(slot).not.toBeNull();
    else expect(slot).toBeNull();
  }
});

test("a source without any session gets one at once where a few sources hold all that they may", () => {
  const { enter, evicted } = rig({ unidentifiedFirst: 7 });
  for (let i = 0; i < 3; i++) for (const source of [1, 2]) entered(enter(`192.0.2.${source}`));
  expect(enter("192.0.2.1")).toBeNull();
  entered(enter("192.0.2.9"));
  expect(enter("192.0.2.9")).toBeNull();
  expect(enter("192.0.2.10")).toBeNull();
  expect(evicted).toEqual([]);
});

test("a newcomer takes the oldest slot of the source that holds most, not before it has been there for two seconds", async () => {
  const { clock, enter, evicted } = rig();
  for (const name of ["a1", "a2", "a3", "a4"]) entered(enter("192.0.2.1", name));
  for (const name of ["b1", "b2"]) entered(enter("192.0.2.2", name));
  await clock.advance(1_999);
  expect(enter("192.0.2.3")).toBeNull();
  await clock.advance(1);
  entered(enter("192.0.2.3", "c1"));
  entered(enter("192.0.2.4", "d1"));
  expect(evicted).toEqual(["a1", "a2"]);
});

test("a source takes from a larger one only, and nothing from one of its own size", async () => {
  const { clock, enter, evicted } = rig();
  for (const name of ["a1", "a2", "a3"]) entered(enter("192.0.2.1", name));
  for (const name of ["b1", "b2", "b3"]) entered(enter("192.0.2.2", name));
  await clock.advance(9_999);
  expect(enter("192.0.2.2", "b4")).toBeNull();
  entered(enter("192.0.2.3", "c1"));
  expect(evicted).toEqual(["a1"]);
});

test("among sources that hold one each, the oldest makes room once it has waited for ten seconds", async () => {
  const { clock, enter, evicted } = rig();
  for (let i = 1; i <= 6; i++) {
    entered(enter(`192.0.2.${i}`));
    await clock.advance(1_000);
  }
  expect(enter("192.0.2.7")).toBeNull();
  await clock.advance(4_000);
  entered(enter("192.0.2.7"));
  expect(enter("192.0.2.8")).toBeNull();
  expect(evicted).toEqual(["192.0.2.1"]);
});

test("a session with a login is never evicted, and is again when its login has ended", async () => {
  const { clock, enter, evicted } = rig({ total: 2, unidentified: 2 });
  const first = entered(enter("192.0.2.1"));
  first.identify(1);
  entered(enter("192.0.2.2")).identify(1);
  await clock.advance(600_000);
  expect(enter("192.0.2.3")).toBeNull();
  first.renew();
  expect(enter("192.0.2.3")).toBeNull();
  await clock.advance(10_000);
  entered(enter("192.0.2.3"));
  expect(evicted).toEqual(["192.0.2.1"]);
  first.leave();
  expect(enter("192.0.2.4")).toBeNull();
});

test("a source at its own limit evicts no session", async () => {
  const { clock, enter, evicted } = rig();
  for (let i = 1; i <= 4; i++) entered(enter("2001:db8::1"));
  for (let i = 1; i <= 2; i++) entered(enter("192.0.2.2"));
  await clock.advance(60_000);
  expect(enter("2001:db8::2")).toBeNull();
  expect(evicted).toEqual([]);
});

test("a slot is given back once, whatever is done with it afterwards", () => {
  const { enter } = rig({ total: 1, unidentified: 1 });
  const slot = entered(enter("192.0.2.1"));
  slot.identify(7);
  slot.leave();
  slot.leave();
  slot.identify(7);
  slot.renew();
  entered(enter("192.0.2.1"));
  expect(enter("192.0.2.2")).toBeNull();
});

test("an account's share is half of what the others leave, and one at least", () => {
  const { enter, limiter } = rig({ total: 100, perSource: 100, unidentified: 100 });
  const login = (account: number): Slot => {
    const slot = entered(enter("192.0.2.1"));
    slot.identify(account);
    return slot;
  };
  expect(limiter.shareOf(1)).toEqual({ open: 0, share: 50 });
  const slots = Array.from({ length: 50 }, () => login(1));
  expect(limiter.shareOf(1)).toEqual({ open: 50, share: 50 });
  expect(limiter.shareOf(2)).toEqual({ open: 0, share: 25 });
  for (let i = 0; i < 49; i++) login(2);
  expect(limiter.shareOf(3)).toEqual({ open: 0, share: 1 });
  for (const slot of slots) slot.leave();
  expect(limiter.shareOf(1)).toEqual({ open: 0, share: 26 });
});

test("256 refused connections may wait for their words to be read, and no more", () => {
  const { limiter } = rig();
  const waiting = Array.from({ length: 256 }, () => limiter.refuse());
  expect(waiting.every((leave) => leave !== null)).toBe(true);
  expect(limiter.refuse()).toBeNull();
  waiting[0]?.();
  waiting[0]?.();
  expect(limiter.refuse()).not.toBeNull();
  expect(limiter.refuse()).toBeNull();
});
