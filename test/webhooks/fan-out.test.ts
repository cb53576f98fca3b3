// Events of accounts with many endpoints, queued piece by piece: what the store refuses is tried again, and not more often
// for more accounts.
import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { StoreUnavailable, type FanOutPiece } from "../../src/store/store.ts";
import { createFanOut } from "../../src/webhooks/fan-out.ts";
import { ManualClock, settle } from "../support/clock.ts";

function refusing(accounts: number[]) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const state = { refuses: true };
  const store = {
    accountsToFanOut: async () => accounts,
    async fanOut(accountKey: number) {
      asked.push(accountKey);
      if (state.refuses) throw new StoreUnavailable("full", "no room");
      accounts = accounts.filter((one) => one !== accountKey);
      return null;
    },
  };
  const logged: unknown[] = [];
  const log = { ...silentLog, error: (fields: unknown) => void logged.push(fields) };
  return { clock, asked, logged, state, fanOut: createFanOut({ store, clock, log }) };
}

test("while the store refuses, each account is tried once a second, however many there are, and said once", async () => {
  const accounts = Array.from({ length: 20 }, (_, n) => n + 1);
  const { clock, asked, logged, state, fanOut } = refusing(accounts);
  fanOut.kick();
  await settle();
  for (let second = 1; second <= 5; second++) {
    expect(asked.splice(0).toSorted((a, b) => a - b)).toEqual(accounts);
    expect(logged.splice(0)).toHaveLength(1);
    await clock.advance(1000);
    await settle();
  }
  state.refuses = false;
  await clock.advance(1000);
  await settle();
  asked.length = 0;
  await clock.advance(60_000);
  expect(asked).toEqual([]);
  await fanOut.stop();
});

test("what was refused is not tried again after a stop", async () => {
  const { clock, asked, fanOut } = refusing([1]);
  fanOut.kick();
  await settle();
  await fanOut.stop();
  expect(clock.pending).toBe(0);
  await clock.advance(60_000);
  expect(asked).toEqual([1]);
});

test("an account's pieces are written 20 ms apart, another account's beside them; a stop waits for no rest", async () => {
  const clock = new ManualClock();
  const asked: number[] = [];
  const store = {
    accountsToFanOut: async () => [1, 2],
    async fanOut(accountKey: number) {
      asked.push(accountKey);
      return { seq: asked.length, endpointKey: null };
    },
  };
  const fanOut = createFanOut({ store, clock, log: silentLog });
  fanOut.kick();
  await settle();
  expect(asked).toEqual([1, 2]);
  await clock.advance(19);
  expect(asked).toEqual([1, 2]);
  await clock.advance(1);
  await settle();
  expect(asked).toEqual([1, 2, 1, 2]);
  await fanOut.stop();
  expect(clock.pending).toBe(0);
  expect(asked).toHaveLength(4);
});

test("a stop while a piece is written waits for the piece, and for no rest after it", async () => {
  const clock = new ManualClock();
  const piece = Promise.withResolvers<FanOutPiece>();
  const store = { accountsToFanOut: async () => [1], fanOut: () => piece.promise };
  const fanOut = createFanOut({ store, clock, log: silentLog });
  fanOut.kick();
  await settle();
  let stopped = false;
  const stopping = fanOut.stop().then(() => (stopped = true));
  await settle();
  expect(stopped).toBe(false);
  piece.resolve({ seq: 1, endpointKey: 7 });
  await settle();
  expect([stopped, clock.pending]).toEqual([true, 0]);
  await clock.advance(1000);
  await stopping;
});

test("each piece goes on where the one before ended", async () => {
  const clock = new ManualClock();
  const befores: (FanOutPiece | null)[] = [];
  const store = {
    accountsToFanOut: async () => [1],
    async fanOut(_accountKey: number, before: FanOutPiece | null) {
      befores.push(before);
      return befores.length < 3 ? { seq: 100, endpointKey: befores.length } : null;
    },
  };
  const fanOut = createFanOut({ store, clock, log: silentLog });
  fanOut.kick();
  await settle();
  await clock.advance(40);
  await settle();
  expect(befores).toEqual([null, { seq: 100, endpointKey: 1 }, { seq: 100, endpointKey: 2 }]);
  await fanOut.stop();
});
