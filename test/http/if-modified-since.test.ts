// Last-Modified and If-Modified-Since within a second, as time goes by, and in every form of a date.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { NewSuppression } from "../../src/model/suppression.ts";
import type { Store } from "../../src/store/store.ts";
import {
  accept,
  minute,
  newDirectory,
  newMessage,
  newSuppression,
  openSqlite,
  settlementOf,
} from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { getFrom, reading, second, stampOf } from "./conditional-reads.ts";
import { newDomain, startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let account: number;

beforeAll(async () => {
  http = await startStored(() => ({ config: { rates: {} } }));
  ({ store, clock } = http);
  account = http.account.key;
  await store.createDomain(newDomain(account, "shop.example", clock.now()));
});
afterAll(() => http.stop());
beforeEach(() => clock.advance(5000));

const get = getFrom(() => http);
const read = reading(get);

describe("within a second", () => {
  test.each([0, 1, 400, 999])(
    "a change %i ms after an answer is never hidden behind its date",
    async (ms) => {
      await clock.advance(1000 - (clock.now() % 1000));
      await add(`one${ms}@a.test`);
      const stamp = await read("/v1/suppressions");
      expect(stamp).toBe(second(clock.now()));
      await clock.advance(ms);
      await add(`two${ms}@a.test`);
      for (const wait of [0, 1000, 60_000]) {
        await clock.advance(wait);
        expect((await get("/v1/suppressions", stamp)).status).toBe(200);
      }
      await clock.advance(2000);
      expect((await get("/v1/suppressions", await read("/v1/suppressions"))).status).toBe(304);
    },
  );

  test("nor behind the Date of one that was older", async () => {
    await clock.advance(1000 - (clock.now() % 1000));
    await read("/v1/suppressions");
    const date = second(clock.now());
    await clock.advance(10);
    await add("dated@a.test");
    await clock.advance(5000);
    expect((await get("/v1/suppressions", date)).status).toBe(200);
  });

  test("an entry is shown again when it changes twice in one", async () => {
    await clock.advance(1000 - (clock.now() % 1000));
    await add("twice@a.test", { expiresAt: clock.now() + minute });
    const path = "/v1/suppressions/twice@a.test";
    const stamp = stampOf(await get(path));
    await clock.advance(500);
    await add("twice@a.test", { expiresAt: clock.now() + 2 * minute });
    await clock.advance(10_000);
    expect((await get(path, stamp)).status).toBe(200);
  });

  test("an outcome that was written late is not taken for an old one", async () => {
    await clock.advance(1000 - (clock.now() % 1000));
    const at = clock.now();
    const message = newMessage({ accountKey: account, to: ["carol@c.test"], at, lease: true });
    const [job] = await accept(store, message);
    if (!job) throw new Error("no job");
    await clock.advance(4000);
    await add("busy@a.test");
    await accept(store, newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now() }));
    const path = `/v1/messages/${message.message.id}`;
    const stamp = stampOf(await get(path));
    await clock.advance(3000);
    await store.settle(settlementOf(job, at + 10)); // the store had refused it for a while
    await clock.advance(3000);
    expect((await get(path, stamp)).status).toBe(200);
  });

  test("304 waits until the second of the change is over", async () => {
    await clock.advance(1000 - (clock.now() % 1000));
    await add("over@a.test");
    const stamp = await read("/v1/suppressions");
    await clock.advance(999);
    expect((await get("/v1/suppressions", stamp)).status).toBe(200);
    await clock.advance(1);
    expect((await get("/v1/suppressions", stamp)).status).toBe(304);
  });
});

describe("what changes with time alone", () => {
  test("the end of a suppression is a change of the list", async () => {
    await add("brief@a.test", { expiresAt: clock.now() + 10_500 });
    await clock.advance(3000);
    const stamp = await read("/v1/suppressions");
    await clock.advance(5000);
    expect((await get("/v1/suppressions", stamp)).status).toBe(304);
    await clock.advance(5000);
    expect((await get("/v1/suppressions", stamp)).status).toBe(200);
    const after = await read("/v1/suppressions");
    expect((await get("/v1/suppressions", after)).status).toBe(304);
  });

  test("mail whose time has come is queued, without a write", async () => {
    const sendAt = clock.now() + 10_500;
    const message = newMessage({ accountKey: account, to: ["carol@c.test"], at: clock.now(), sendAt });
    await accept(store, message);
    const path = `/v1/messages/${message.message.id}`;
    await clock.advance(3000);
    const stamps = [await read("/v1/messages"), stampOf(await get(path))] as const;
    await clock.advance(5000);
    expect([(await get("/v1/messages", stamps[0])).status, (await get(path, stamps[1])).status]).toEqual([
      304, 304,
    ]);
    await clock.advance(5000);
    expect((await get("/v1/messages", stamps[0])).status).toBe(200);
    expect((await get(path, stamps[1])).json["status"]).toBe("queued");
  });
});

describe("If-Modified-Since", () => {
  const path = "/v1/domains";
  const since = async (write: (at: Date) => string): Promise<number> => {
    const at = new Date(clock.now() - 1000);
    return (await get(path, write(at))).status;
  };
  const iso = (at: Date, from: number, to: number): string => at.toISOString().slice(from, to);

  test("counts in the form of today and in both old ones", async () => {
    expect(await since((at) => at.toUTCString())).toBe(304);
    expect(
      await since(
        (at) =>
          `${at.toLocaleDateString("en-US", { weekday: "long", timeZone: "UTC" })}, ${at.toUTCString().slice(5, 11).replaceAll(" ", "-")}-${iso(at, 2, 4)} ${iso(at, 11, 19)} GMT`,
      ),
    ).toBe(304);
    expect(
      await since((at) => {
        const [weekday, day, month, year, time] = at.toUTCString().replace(",", "").split(" ");
        return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`;
      }),
    ).toBe(304);
  });

  test.each([
    ["a time to come", (at: Date) => new Date(at.getTime() + 60_000).toUTCString()],
    ["another zone", (at: Date) => at.toUTCString().replace("GMT", "UTC")],
    ["ISO 8601", (at: Date) => at.toISOString()],
    [
      "a wrong weekday",
      (at: Date) => at.toUTCString().replace(/^\w{3}/, (day) => (day === "Mon" ? "Tue" : "Mon")),
    ],
    ["a day that does not exist", () => "Mon, 30 Feb 2026 00:00:00 GMT"],
    ["in lower case", (at: Date) => at.toUTCString().toLowerCase()],
    ["before a comment", (at: Date) => `${at.toUTCString()} (x)`],
    ["without the seconds", (at: Date) => at.toUTCString().replace(/:\d\d GMT/, " GMT")],
    ["an hour that does not exist", (at: Date) => at.toUTCString().replace(/ \d\d:/, " 24:")],
    ["a number", (at: Date) => String(at.getTime())],
    ["nothing", () => ""],
  ])("is ignored where it is %s", async (_name, write) => {
    expect(await since(write)).toBe(200);
  });

  test("is ignored beside If-None-Match, and where it comes twice", async () => {
    const stamp = await read(path);
    expect((await get(path, stamp)).status).toBe(304);
    expect((await get(path, stamp, { headers: { "if-none-match": '"x"' } })).status).toBe(200);
    const twice = { path, headers: { "if-modified-since": [stamp, stamp] } };
    expect((await http.ask(twice)).status).toBe(200);
  });

  test("makes no 304 of a refusal: what is not there is 404, a bad filter 400, an empty bucket 429", async () => {
    const now = second(clock.now());
    expect((await get("/v1/messages/msg_00000000000000000000000000", now)).status).toBe(404);
    expect((await get("/v1/events?order=sideways", now)).status).toBe(400);
    await clock.advance(60_000);
    const stamp = await read("/v1/events");
    for (let i = 0; i < 29; i++) await read("/v1/events");
    expect((await get("/v1/events", stamp)).status).toBe(429);
    await clock.advance(100);
    for (let i = 0; i < 40; i++) expect((await get("/v1/events", stamp)).status).toBe(304);
    expect((await get("/v1/events")).headers["x-ratelimit-remaining"]).toBe("0");
  });

  test("of another process is answered in full once: its start counts as a change", async () => {
    const stamp = await read(path);
    await clock.advance(60_000);
    const next = await openSqlite(newDirectory(), clock);
    const { at } = await next.lastChange(account, ["domains"]);
    await next.close();
    expect(at).toBeGreaterThan(Date.parse(stamp));
  });

  test("does not tell one account of another's changes", async () => {
    const stamp = await read("/v1/suppressions");
    await clock.advance(3000);
    await store.addSuppressions([newSuppression(account + 1, "x@a.test")], clock.now());
    await clock.advance(3000);
    expect((await get("/v1/suppressions", stamp)).status).toBe(304);
  });
});

async function add(email: string, wishes: Partial<NewSuppression> = {}): Promise<void> {
  await store.addSuppressions([newSuppression(account, email, wishes)], clock.now());
}
