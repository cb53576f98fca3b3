// The inbox of caught mail over a real store.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, newMessage, settlementOf } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let door: Stored;
let store: Store;
let clock: ManualClock;
let accountKey: number;
let ask: Stored["call"];

beforeAll(async () => {
  door = await startStored();
  ({ store, clock, call: ask } = door);
  accountKey = door.account.key;
});
afterAll(() => door.stop());
beforeEach(() => door.clock.advance(1000));

describe("what only the operator sees", () => {
  const admin = (method: string, path: string, body?: unknown) => ask(method, path, body, { admin: true });

  test("the inbox shows what was caught, newest first, and is emptied", async () => {
    const message = newMessage({ accountKey, at: clock.now(), to: ["in@box.test"], lease: true });
    const [job] = await accept(store, message);
    if (!job) throw new Error("not leased");
    await store.settle(settlementOf(job, clock.now(), { catchInInbox: true }));
    const { json } = await admin("GET", "/v1/inbox");
    expect(list(json["data"])[0]).toMatchObject({
      message_id: message.message.id,
      to: "in@box.test",
      from: "info@shop.example",
      subject: "Your order",
    });
    expect((await admin("DELETE", "/v1/inbox")).json).toEqual({ cleared: 1 });
    expect((await admin("GET", "/v1/inbox")).json).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });
});
