// `svc top` where there is no terminal to redraw. On one: test/peers/top.test.ts.
import { expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { fakeDaemon, svc } from "./world.ts";

const sample = { at: "2026-11-27T09:10:00.000Z", queue: { queued: 1 } };

test("into a pipe, or on a terminal that cannot move its cursor, it is exit 2 and names what to use", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/activity": { json: sample } });
  for (const world of [{}, { tty: true, env: { TERM: "dumb" } }]) {
    const ran = await svc(["top"], { socket, ...world });
    expect([ran.code, ran.out]).toEqual([2, ""]);
    expect(ran.err).toContain("svc status");
    expect(ran.err).toContain("svc top --json");
  }
  expect(seen).toEqual([]);
});

test("on a terminal without a daemon it says so in words, exit 6", async () => {
  const ran = await svc(["top"], { socket: "/nowhere/admin.sock", tty: true });
  expect([ran.code, ran.out]).toEqual([6, ""]);
  expect(ran.err).toContain("no daemon answers");
});

test("--json prints a sample a line, each interval, until the daemon is gone", async () => {
  const clock = new ManualClock();
  let asked = 0;
  const { socket } = await fakeDaemon({
    "GET /v1/activity": () => {
      asked += 1;
      return asked < 3
        ? { json: sample }
        : { status: 503, json: { code: "service_overloaded", detail: "Stopping." } };
    },
  });
  const running = svc(["top", "--json", "--interval", "10s"], { socket, clock });
  let over = false;
  void running.finally(() => (over = true));
  while (!over) await clock.advance(10_000);
  const ran = await running;
  expect(ran.out).toBe(`${JSON.stringify(sample)}\n`.repeat(2));
  expect(ran.code).toBe(1);
});

test.each(["100ms", "2h", "often"])("the interval %s is refused", async (interval) => {
  const ran = await svc(["top", "--json", "--interval", interval], { socket: "/nowhere" });
  expect(ran.code).toBe(2);
  expect(ran.err).toContain("--interval");
});
