// /v1/lockouts, /v1/reload and /v1/logs: what the operator asks of the running server.
import { afterEach, beforeEach, expect, test } from "vitest";
import { request } from "node:http";
import type { LogLines } from "../../src/log.ts";
import { list, startHttp, type Harness } from "./harness.ts";

const listeners = new Set<(line: string) => void>();
const kept: string[] = [];
const logLines: LogLines = {
  last: () => kept,
  onLine(listener) {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  },
};
const log = (level: string, component: string, msg: string): void => {
  const line = JSON.stringify({ level, time: "2026-11-27T09:00:00.000Z", component, msg });
  kept.push(line);
  for (const listener of listeners) listener(line);
};

let http: Harness;
let reloaded = 0;
beforeEach(async () => {
  kept.length = 0;
  http = await startHttp({
    logLines,
    reload: () => {
      reloaded += 1;
      return Promise.resolve({
        failed: [{ part: "shaping_file", faults: ["x.yaml: found nothing"] }],
        restartFor: ["outbound.max_age"],
      });
    },
  });
});
afterEach(() => http.stop());

const operator = (method: string, path: string) => http.ask({ admin: true, method, path });
const failTimes = async (times: number): Promise<void> => {
  for (let n = 0; n < times; n++)
    await http.access.authenticateKey("Bearer svc_live_wrong", "2001:db8:0:7::1").catch(() => undefined);
};

test("a source that is locked out is listed with its end, and is let in again when it is cleared", async () => {
  await failTimes(49);
  expect((await operator("GET", "/v1/lockouts")).json["data"]).toEqual([]);
  await failTimes(1);
  const rows = list((await operator("GET", "/v1/lockouts")).json["data"]);
  expect(rows).toEqual([{ source: "2001:db8:0:7::/64", failures: 50, until: "2026-11-27T09:05:00.000Z" }]);
  const { value } = await http.key("admin");
  const authenticate = () => http.access.authenticateKey(`Bearer ${value}`, "2001:db8:0:7:ffff::1");
  await expect(authenticate()).rejects.toMatchObject({ code: "source_ip_locked" });
  expect((await operator("DELETE", "/v1/lockouts/2001:db8:0:7::99")).status).toBe(204);
  expect((await authenticate()).kind).toBe("key");
  expect((await operator("GET", "/v1/lockouts")).json["data"]).toEqual([]);
});

test("a lock-out is cleared by the name that the list gives it too", async () => {
  await failTimes(50);
  expect((await operator("DELETE", "/v1/lockouts/2001:db8:0:7::%2F64")).status).toBe(204);
});

test.each(["192.0.2.1", "not-an-address", "%00"])(
  "clearing %s, which is not locked out, is 404",
  async (ip) => {
    const { status, json } = await operator("DELETE", `/v1/lockouts/${ip}`);
    expect([status, json["code"] ?? (json["error"] as { code?: string })?.code]).toEqual([
      404,
      "resource_not_found",
    ]);
  },
);

test("what the server does now is shown with what slows it down, unlimited rates as null", async () => {
  const counts = { delivered: 1, deferred: 2, bounced: 3 };
  const seconds = Array<number>(60).fill(0);
  const slowed = { since: 0, at: 1000, reply: "421 4.7.28 too fast" };
  const shown = await startHttp({
    activity: {
      now: () =>
        Promise.resolve({
          at: 61_000,
          startedAt: 0,
          seconds: { accepted: seconds, delivered: seconds, deferred: seconds, bounced: seconds },
          queue: { scheduled: 1, queued: 2, deferred: 3, sending: 4, held: 5, oldestDueAt: 1000 },
          connections: 6,
          attempts: 7,
          unwritten: 0,
          providers: [{ key: "google", counts, attempts: 4 }],
          ips: [{ key: "192.0.2.1", counts, attempts: 4 }],
          webhooks: [
            {
              key: "whk_1",
              url: "https://a.example/",
              counts: { delivered: 1, failed: 2, dead_lettered: 0 },
            },
          ],
          slowed: [
            {
              group: "google",
              address: null,
              taken: 1,
              factor: 0.5,
              limit: 5,
              perSecond: Infinity,
              waitMs: 0,
              slowed,
            },
          ],
        }),
    },
  });
  const { status, json } = await shown.ask({ admin: true, path: "/v1/activity" });
  await shown.stop();
  expect(status).toBe(200);
  expect(json).toMatchObject({
    at: "1970-01-01T00:01:01.000Z",
    queue: { queued: 2, oldest_due_at: "1970-01-01T00:00:01.000Z" },
    providers: [{ provider: "google", ...counts, attempts: 4 }],
    ips: [{ ip_address: "192.0.2.1", ...counts, attempts: 4 }],
    webhooks: [{ id: "whk_1", url: "https://a.example/", delivered: 1, failed: 2, dead_lettered: 0 }],
    backing_off: [
      { group: "google", sending_ip: null, per_second: null, attempts_limit: 5, reply: slowed.reply },
    ],
  });
});

test("a lock-out that has ended is neither listed nor cleared", async () => {
  await failTimes(50);
  await http.clock.advance(300_000);
  expect((await operator("GET", "/v1/lockouts")).json["data"]).toEqual([]);
  expect((await operator("DELETE", "/v1/lockouts/2001:db8:0:7::1")).status).toBe(404);
});

test("a reload says what could not be used and what needs a restart", async () => {
  const before = reloaded;
  const { status, json } = await operator("POST", "/v1/reload");
  expect([status, reloaded - before]).toEqual([200, 1]);
  expect(json).toEqual({
    failed: [{ part: "shaping_file", faults: ["x.yaml: found nothing"] }],
    restart_needed_for: ["outbound.max_age"],
  });
});

test.each(["GET /v1/lockouts", "POST /v1/reload", "GET /v1/logs", "GET /v1/activity"])(
  "%s is not on the public listener, not even for an admin's key",
  async (route) => {
    const [method = "", path = ""] = route.split(" ");
    expect((await http.ask({ method, path })).status).toBe(404);
  },
);

const messages = (text: string): unknown[] =>
  text
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { msg: string }).msg);

test("the last lines of the log, of a component, of a level, and only so many", async () => {
  log("info", "queue", 'one "component":"http"');
  log("warn", "http", "two");
  log("error", "queue", "three");
  const asked = async (query: string) => messages((await operator("GET", `/v1/logs${query}`)).text);
  expect(await asked("")).toEqual(['one "component":"http"', "two", "three"]);
  expect(await asked("?component=http")).toEqual(["two"]);
  expect(await asked("?level=warn")).toEqual(["two", "three"]);
  expect(await asked("?lines=1&component=queue")).toEqual(["three"]);
  expect(await asked("?lines=0")).toEqual([]);
});

test.each(["?component=a%22b", "?level=loud", "?lines=2001", "?lines=-1", "?follow=maybe"])(
  "GET /v1/logs%s is refused",
  async (query) => expect((await operator("GET", `/v1/logs${query}`)).status).toBe(400),
);

test("with follow=true the answer goes on with what is logged, and a reader that goes away is forgotten", async () => {
  log("info", "queue", "before");
  let text = "";
  const asked = request({ socketPath: http.socket, path: "/v1/logs?follow=true&component=queue" });
  const came = async (part: string): Promise<void> => {
    while (!text.includes(part)) await new Promise((resolve) => setImmediate(resolve));
  };
  asked.on("response", (response) => response.on("data", (bytes: Buffer) => (text += bytes.toString())));
  asked.on("error", () => undefined);
  asked.end();
  await came("before");
  log("info", "http", "not asked for");
  log("info", "queue", "after");
  await came("after");
  expect(messages(text)).toEqual(["before", "after"]);
  asked.destroy();
  while (listeners.size > 0) await new Promise((resolve) => setImmediate(resolve));
});
