// `svc healthcheck`, `reload`, `lockouts`, `logs` and `audit tail`: exit codes, streams and words.
import { expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { fakeDaemon, page, svc, type Reply } from "./world.ts";

const refusing: Reply = {
  status: 503,
  json: { code: "maintenance", detail: "The service is in maintenance.", retry_after_seconds: 60 },
};

test("healthcheck: alive and ready are exit 0, not ready is 1, and without a daemon it is 6", async () => {
  const { socket, seen } = await fakeDaemon({
    "GET /healthz": { json: { status: "ok" } },
    "GET /readyz": { json: { status: "ready" } },
  });
  expect(await svc(["healthcheck", "--live"], { socket })).toEqual({ code: 0, out: "alive\n", err: "" });
  expect(await svc(["healthcheck", "--ready"], { socket })).toEqual({ code: 0, out: "ready\n", err: "" });
  expect((await svc(["healthcheck"], { socket })).out).toBe("ready\n");
  expect((await svc(["--json", "healthcheck"], { socket })).out).toBe('{"status":"ready"}\n');
  expect(seen.map(({ path }) => path)).toEqual(["/healthz", "/readyz", "/readyz", "/readyz"]);
  const closed = await fakeDaemon({ "GET /readyz": refusing });
  const ran = await svc(["healthcheck", "--ready"], { socket: closed.socket });
  expect([ran.code, ran.out]).toEqual([1, ""]);
  expect(ran.err).toContain("in maintenance");
  expect((await svc(["healthcheck"], { socket: "/nowhere/admin.sock" })).code).toBe(6);
  expect((await svc(["healthcheck", "--live", "--ready"], { socket })).code).toBe(2);
  const atOnce = await svc(["healthcheck", "--timeout", "0s"], { socket });
  expect([atOnce.code, atOnce.err]).toEqual([
    2,
    expect.stringContaining('found "0s", expected a span longer'),
  ]);
});

test("healthcheck: a daemon that does not answer in time is exit 1", async () => {
  const clock = new ManualClock();
  const { createServer } = await import("node:http");
  const { socket: taken } = await fakeDaemon({});
  const socket = `${taken}.silent`;
  const server = createServer(() => void clock.advance(2000));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const ran = await svc(["healthcheck", "--timeout", "2s"], { socket, clock });
  server.closeAllConnections();
  server.close();
  expect([ran.code, ran.out]).toEqual([1, ""]);
  expect(ran.err).toContain("no answer within 2 s");
});

test("reload: what was reloaded on stdout, what needs a restart on stderr", async () => {
  const json = { failed: [], restart_needed_for: ["outbound.max_age", "log.level"] };
  const { socket } = await fakeDaemon({ "POST /v1/reload": { json } });
  const ran = await svc(["reload"], { socket });
  expect(ran).toMatchObject({ code: 0, out: "reloaded the certificates and the shaping file\n" });
  expect(ran.err).toContain("used from the next start: outbound.max_age, log.level");
  expect(await svc(["--json", "reload"], { socket })).toEqual({
    code: 0,
    out: `${JSON.stringify(json)}\n`,
    err: "",
  });
});

test.each([
  ["certificates", 1, "reloaded the shaping file\n"],
  ["configuration", 78, "reloaded the certificates and the shaping file\n"],
])("reload: a fault of %s is exit %d and is told in words", async (part, code, out) => {
  const failed = [{ part, faults: ["/etc/svc/svc.yaml:3: found \x1b[31mred"] }];
  const { socket } = await fakeDaemon({ "POST /v1/reload": { json: { failed, restart_needed_for: [] } } });
  const ran = await svc(["reload"], { socket });
  expect([ran.code, ran.out]).toEqual([code, out]);
  expect(ran.err).toContain("/etc/svc/svc.yaml:3: found \\x1b[31mred");
});

test("logs: more lines than the service keeps are refused", async () => {
  const ran = await svc(["logs", "--lines", "2001"], { socket: "/nowhere/admin.sock" });
  expect([ran.code, ran.err]).toEqual([
    2,
    expect.stringContaining('found "2001", expected a number up to 2000'),
  ]);
});

test("lockouts: listed, and cleared by address", async () => {
  const row = { source: "192.0.2.7", failures: 50, until: "2026-11-27T09:05:00.000Z" };
  const { socket, seen } = await fakeDaemon({
    "GET /v1/lockouts": page([row]),
    "DELETE /v1/lockouts/192.0.2.7": { status: 204 },
  });
  expect((await svc(["lockouts", "list"], { socket })).out).toContain("192.0.2.7\t50\t2026-11-27 09:05:00Z");
  expect(await svc(["lockout", "clear", "192.0.2.7"], { socket })).toMatchObject({
    code: 0,
    out: "192.0.2.7 may authenticate again\n",
  });
  expect((await svc(["lockouts", "clear", "192.0.2.8"], { socket })).code).toBe(3);
  expect(seen.at(-1)?.path).toBe("/v1/lockouts/192.0.2.8");
});

const line = {
  level: "warn",
  time: "2026-11-27T09:00:00.000Z",
  component: "queue",
  message: "msg_1",
  why: "it said \x1b[2J so",
  n: 3,
  msg: "deferred",
};

test("logs: lines for a person in one form, with --json as they are; nothing that a terminal obeys", async () => {
  const text = `${JSON.stringify(line)}\nnot json \x1b[2J\n`;
  const { socket, seen } = await fakeDaemon({ "GET /v1/logs": { text, type: "application/x-ndjson" } });
  const ran = await svc(["logs", "--component", "queue", "--level", "info", "--lines", "5"], { socket });
  expect(ran).toEqual({
    code: 0,
    out:
      '2026-11-27 09:00:00Z WARN  queue: deferred message=msg_1 why="it said \\u001b[2J so" n=3\n' +
      "not json \\x1b[2J\n",
    err: "",
  });
  expect(seen[0]?.query).toEqual({ component: "queue", level: "info", lines: "5" });
  const json = await svc(["--json", "logs"], { socket });
  expect(json.out.split("\n")[0]).toBe(JSON.stringify(line));
});

test("logs: where there is no line it says which level is logged, and where older lines are", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/logs": { text: "", type: "application/x-ndjson" } });
  const { code, out, err } = await svc(["logs"], { socket });
  expect([code, out]).toEqual([0, ""]);
  expect(err).toContain("warn with svc serve --dev");
  expect(err).toContain("Under systemd");
});

test("logs -f: a stream that the daemon ends is exit 6", async () => {
  const { socket, seen } = await fakeDaemon({
    "GET /v1/logs": { text: `${JSON.stringify(line)}\n`, type: "application/x-ndjson" },
  });
  const ran = await svc(["logs", "-f"], { socket });
  expect([ran.code, seen[0]?.query]).toEqual([6, { follow: "true" }]);
  expect(ran.err).toContain("svc logs -f");
});

test.each([
  ["--lines", "many"],
  ["--level", "loud"],
])("logs: %s %s is a usage error", async (flag, value) => {
  expect((await svc(["logs", flag, value], { socket: "/nowhere" })).code).toBe(2);
});

const entry = (at: string, action: string) => ({
  at,
  account: "default",
  actor: { kind: "operator", name: "ann" },
  action,
  target: null,
  times: 1,
  detail: {},
});

test("audit tail: each entry once, oldest first, also one that is written late", async () => {
  const clock = new ManualClock();
  const all = [entry("2026-11-27T09:00:01.000Z", "keys.create")];
  const answers: (() => Reply)[] = [
    () => page([]),
    () => page(all),
    () => ({ status: 503, json: { detail: "Stopping." } }), // a restart is waited for
    () => {
      all.unshift(entry("2026-11-27T09:00:02.000Z", "keys.revoke"));
      all.push(entry("2026-11-27T09:00:00.500Z", "late"));
      return page(all);
    },
    () => page(all),
  ];
  const { socket, seen } = await fakeDaemon({
    "GET /v1/audit": () => answers.shift()?.() ?? { status: 403, json: { detail: "No more." } },
  });
  const running = svc(["audit", "tail", "--action", "keys.*"], { socket, clock });
  let over = false;
  void running.finally(() => (over = true));
  while (clock.pending === 0) await clock.advance(0); // it has looked once
  while (!over) await clock.advance(1000);
  const ran = await running;
  expect(ran.out.split("\n").map((text) => text.split("  ")[2])).toEqual([
    "keys.create",
    "late",
    "keys.revoke",
    undefined,
  ]);
  expect(seen[0]?.query).toEqual({ action: "keys.*", since: "2026-11-27T09:00:00.000Z", limit: "1000" });
  expect(ran.err).toContain("Stopping.; trying again in 1 s");
  expect(ran.code).toBe(4);
});

test("audit export: CSV as the API gives it, NDJSON of all pages with --json", async () => {
  const pages = [page([{ action: "a" }], "c"), page([{ action: "b" }])];
  const { socket, seen } = await fakeDaemon({
    "GET /v1/audit": ({ headers }) =>
      headers.accept === "text/csv" ? { text: "at,actor\r\n", type: "text/csv" } : (pages.shift() ?? {}),
  });
  expect((await svc(["audit", "export", "--since", "1h"], { socket })).out).toBe("at,actor\r\n");
  expect((await svc(["--json", "audit", "export"], { socket })).out).toBe('{"action":"a"}\n{"action":"b"}\n');
  expect(seen.map(({ query }) => query["cursor"])).toEqual([undefined, undefined, "c"]);
});
