// /v1/shaping over the operator's socket: what is set is written and then held to, and what is wrong is refused.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createShaping } from "../../src/queue/shaping.ts";
import { createShapingRules } from "../../src/queue/shaping-rules.ts";
import type { LimiterState } from "../../src/queue/egress.ts";
import type { Store } from "../../src/store/store.ts";
import { silentLog } from "../../src/log.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, type Answer, type Harness } from "./harness.ts";

const clock = new ManualClock();
const shaping = createShaping({ groups: { "file.test": { connections: 3 } } });
const limiters: LimiterState[] = [];
let changes = 0;
let store: Store;
let http: Harness;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({
    opened: { store, clock },
    shapingRules: createShapingRules({
      store,
      shaping,
      limiters: (of) => limiters.filter(({ group }) => of(group)),
      connections: () => 4,
      mxGroupOf: async (domain) =>
        domain === "gone.test" ? null : domain === "acme.test" ? "google" : domain,
      onChange: () => void changes++,
      readFile: () => null,
      log: silentLog,
    }),
  });
});
afterAll(() => http.stop());

const ask = (method: string, name: string, body?: unknown): Promise<Answer> =>
  http.ask({ admin: true, method, path: `/v1/shaping/${name}`, body });

test("what is set holds once it is answered, by name in its one form, and says where each value comes from", async () => {
  const { status, json } = await ask("PATCH", "ACME.test", { per_second: 2.5 });
  expect([status, json]).toMatchObject([200, { name: "acme.test", per_second: 2.5, connections: null }]);
  expect([changes, shaping.groupFor("acme.test", "google") === "google"]).toEqual([1, false]);
  expect((await ask("GET", "acme.test")).json).toMatchObject({
    mx_group: "google",
    origin: "set",
    per_second: 2.5,
    connections: 10,
    tls: null,
    from: {
      per_second: { rule: "acme.test", origin: "set" },
      connections: { rule: "google", origin: "built_in" },
      tls: null,
    },
    now: [],
  });
  expect((await ask("GET", "file.test")).json).toMatchObject({ origin: "shaping_file", connections: 3 });
  expect((await ask("GET", "gone.test")).json).toMatchObject({
    origin: null,
    mx_group: null,
    connections: 10,
  });
  expect((await ask("PATCH", "acme.test", { per_second: null })).json).toMatchObject({ per_second: null });
  expect(shaping.groupFor("acme.test", "google")).toBe("google");
});

test("a slowed address is shown with the reply that slowed it, and counted at the rule that it goes by", async () => {
  const at = clock.now();
  const state = { factor: 0.5, limit: 5, perSecond: 50, waitMs: 20, taken: 2, address: "192.0.2.1" };
  limiters.push(
    { ...state, group: "other.test", slowed: { since: at, at, reply: "421 4.7.28 too fast" } },
    { ...state, group: "acme.test/google", slowed: null, factor: 1 },
    { ...state, group: "google", slowed: null, factor: 1, perSecond: Infinity },
  );
  const rows = (await http.ask({ admin: true, path: "/v1/shaping" })).json["data"] as unknown as {
    name: string;
    slowed: number;
  }[];
  expect(rows.filter(({ slowed }) => slowed > 0)).toMatchObject([{ name: "default", slowed: 1 }]);
  expect((await ask("GET", "other.test")).json).toMatchObject({
    slowed: 1,
    now: [
      {
        group: "other.test",
        sending_ip: "192.0.2.1",
        connections_open: 4,
        attempts: 2,
        attempts_limit: 5,
        per_second: 50,
        factor: 0.5,
        next_in_seconds: 0.02,
        slowed_by: "421 4.7.28 too fast",
      },
    ],
  });
  expect((await ask("GET", "google")).json["now"]).toMatchObject([
    { group: "acme.test/google" },
    { group: "google", per_second: null },
  ]);
});

test.each([
  ["gogle", { connections: 1 }, "name"],
  ["x.test", { connections: 0 }, "connections"],
  ["x.test", { per_second: 0 }, "per_second"],
  ["x.test", { tls: "always" }, "tls"],
  ["default", { tls: "require" }, "tls"],
  ["smart-host", { tls: "require" }, "tls"],
  ["x.test", { conections: 1 }, "conections"],
])("%s with %j is refused, and nothing is set", async (name, body, field) => {
  const { status, json } = await ask("PATCH", name, body);
  expect([status, json["errors"]?.[0]?.["field"]]).toEqual([422, field]);
  expect(await store.shapingRules()).toEqual([]);
});

test("what is not set cannot be unset; no key reaches it", async () => {
  expect((await ask("DELETE", "x.test")).status).toBe(404);
  await ask("PATCH", "x.test", { connections: 1 });
  expect((await ask("DELETE", "x.test")).status).toBe(204);
  expect((await http.ask({ path: "/v1/shaping" })).status).toBe(404);
});
