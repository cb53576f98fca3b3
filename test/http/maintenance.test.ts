// Maintenance mode, begun and ended by the operator, over HTTP and with the real store.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMaintenance } from "../../src/maintenance/maintenance.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startHttp, type Answer, type Harness } from "./harness.ts";

const clock = new ManualClock();
const path = "/v1/maintenance";
let store: Store;
let http: Harness;
beforeAll(async () => {
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({ opened: { store, clock } });
});
afterAll(() => http.stop());

const close = (body?: object): Promise<Answer> => http.ask({ admin: true, method: "POST", path, body });
const open = (): Promise<Answer> => http.ask({ admin: true, method: "DELETE", path });
const at = (fromNowMs: number): string => new Date(clock.now() + fromNowMs).toISOString();

test("clients meet 503 maintenance and how long it lasts; the operator does not", async () => {
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
  const closed = await close({ until: at(90_500) });
  expect([closed.status, closed.json]).toEqual([200, { active: true, since: at(0), until: at(90_500) }]);
  const { status, headers, json } = await http.ask({ path: "/v1/messages" });
  expect([status, headers["retry-after"], headers["content-type"]]).toEqual([
    503,
    "91",
    "application/problem+json",
  ]);
  expect(json).toMatchObject({ code: "maintenance", status: 503, retry_after_seconds: 91 });
  expect(json["request_id"]).toBe(headers["x-request-id"]);
  expect(headers["x-ratelimit-bucket"]).toBe("unauthenticated");
  expect((await http.ask({ admin: true, path: "/v1/messages" })).status).toBe(200);
  await open();
});

test.each([
  { path: "/v1/messages", method: "POST", body: {} },
  { path: "/v1/messages", key: null },
  { path: "/v1/nowhere" },
  { path: "/favicon.ico", key: null },
  { path: "/v1/messages", method: "PUT" },
  { path: "/v1/suppressions/%zz" },
])("it stands before every other refusal: %j", async (ask) => {
  await close();
  const { status, json, headers } = await http.ask(ask);
  expect([status, json["code"], headers["retry-after"]]).toEqual([503, "maintenance", "300"]);
  await open();
});

test("maintenance begins and ends with its row in the audit log, or not at all", async () => {
  const bare = await openSqlite(newDirectory(), clock);
  const recordAudit: Store["recordAudit"] = () =>
    Promise.reject(new Error("nothing is written behind the act"));
  const other = await startHttp({ opened: { store: { ...bare, recordAudit }, clock } });
  expect((await other.ask({ admin: true, method: "POST", path })).status).toBe(200);
  expect((await other.ask({ admin: true, method: "DELETE", path })).status).toBe(204);
  const { rows } = await bare.listAudit({}, { limit: 10, cursor: null });
  expect(rows.map(({ action }) => action)).toEqual(
    expect.arrayContaining(["maintenance.off", "maintenance.on"]),
  );
  await other.stop();
});

test("what is open to anybody stays open; readiness says no, with the same answer", async () => {
  await close({ until: at(60_000) });
  expect((await http.ask({ path: "/healthz", key: null })).status).toBe(200);
  expect((await http.ask({ path: "/errors/maintenance", key: null })).status).toBe(200);
  const ready = await http.ask({ path: "/readyz", key: null });
  expect([ready.status, ready.json["code"], ready.headers["retry-after"]]).toEqual([
    503,
    "maintenance",
    "60",
  ]);
  await open();
  expect((await http.ask({ path: "/readyz", key: null })).status).toBe(200);
});

test("it ends by itself at its time, and says at least a second until then", async () => {
  await close({ until: at(1_000) });
  await clock.advance(999);
  expect((await http.ask({ path: "/v1/messages" })).headers["retry-after"]).toBe("1");
  await clock.advance(1);
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
  expect((await http.ask({ admin: true, path })).json).toEqual({ active: false, since: null, until: null });
});

test("a second time changes until when, and not since when; ending what is not on is no fault", async () => {
  const since = at(0);
  await close();
  await clock.advance(5_000);
  expect((await close({ until: at(60_000) })).json).toEqual({ active: true, since, until: at(60_000) });
  expect((await open()).status).toBe(204);
  expect((await open()).status).toBe(204);
});

test("a time that is past, or none, is refused, and nothing changes", async () => {
  for (const until of [at(0), at(-1), "soon"]) {
    const { status, json } = await close({ until });
    expect([status, json["code"], json["field"]]).toEqual([422, "validation_failed", "until"]);
  }
  expect((await http.ask({ path: "/v1/messages" })).status).toBe(200);
});

test("a key of any scope finds no such path", async () => {
  for (const method of ["GET", "POST", "DELETE"]) {
    const { status } = await http.ask({ path, method, ...(method === "POST" ? { body: {} } : {}) });
    expect(status).toBe(404);
  }
});

test("a restart in the middle of it opens nothing", async () => {
  await close({ until: at(60_000) });
  const next = createMaintenance({ store, clock });
  await next.reload();
  expect(next.refusal()).toMatchObject({ code: "maintenance", extras: { retry_after_seconds: 60 } });
  await open();
});
