// What the API lets through of text that not every engine can store.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, type Harness } from "./harness.ts";
import { removeFolder } from "../support/folders.ts";

const dataDir = newDirectory();
let http: Harness;
let store: Store;

beforeAll(async () => {
  const clock = new ManualClock();
  store = await openSqlite(dataDir, clock);
  http = await startHttp({ opened: { store, clock }, webhooks: { checkUrl: async () => undefined } });
});
afterAll(async () => {
  await http.stop();
  await store.close();
  removeFolder(dataDir);
});

test.each([null, "once"])(
  "a NUL and a lone surrogate in a description are U+FFFD in the first answer and in every later one, Idempotency-Key %j",
  async (key) => {
    const made = await http.ask({
      method: "POST",
      path: "/v1/webhooks",
      raw: '{"url":"https://hooks.example/in","description":"a\\u0000b\\ud800c"}',
      headers: { "content-type": "application/json", ...(key === null ? {} : { "idempotency-key": key }) },
    });
    expect([made.status, made.json["description"]]).toEqual([201, "a\ufffdb\ufffdc"]);
    const shown = await http.ask({ path: made.headers["location"] ?? "" });
    expect([shown.status, shown.json["description"]]).toEqual([200, "a\ufffdb\ufffdc"]);
  },
);
