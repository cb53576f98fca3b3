import { expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { fakeDaemon, svc } from "./world.ts";

test("drain refuses clients and ends once nothing is due or being sent", async () => {
  const queues = [
    { queued: 2, sending: 1 },
    { queued: 0, sending: 1 },
    { queued: 0, sending: 0, deferred: 4, scheduled: 1, held: 0 },
  ];
  const { socket, seen } = await fakeDaemon({
    "POST /v1/maintenance": { json: { active: true, since: "s", until: null } },
    "GET /v1/status": () => ({ json: { queue: queues.shift() } }),
  });
  const ran = await svc(["drain"], { socket, clock: atOnce() });
  expect([ran.code, ran.out]).toEqual([
    0,
    "drained: nothing is due or being sent; in the queue stay 4 deferred, 1 scheduled, 0 held\n",
  ]);
  expect(ran.err).toContain("maintenance off");
  expect(seen.map(({ method }) => method)).toEqual(["POST", "GET", "GET", "GET"]);
});

test("drain gives up after --timeout and says that clients are still refused", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/maintenance": { json: { active: true, since: "s", until: null } },
    "GET /v1/status": { json: { queue: { queued: 3, sending: 0 } } },
  });
  const ran = await svc(["drain", "--timeout", "2s"], { socket, clock: atOnce() });
  expect([ran.code, ran.out]).toEqual([1, ""]);
  expect(ran.err).toContain("3 recipients are still queued or being sent");
  expect(ran.err).toContain("maintenance off");
  expect(seen).toHaveLength(4);
  expect((await svc(["drain", "--timeout", "soon"], { socket })).code).toBe(2);
});

/** Each timer is due as soon as it is set, and time has passed by then. */
function atOnce(): ManualClock {
  const clock = new ManualClock();
  const after = clock.after.bind(clock);
  clock.after = (delayMs, run) => {
    const timer = after(delayMs, run);
    void clock.advance(delayMs);
    return timer;
  };
  return clock;
}
