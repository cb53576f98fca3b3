// Webhook endpoints and events from the command line.
import { expect, test } from "vitest";
import { fakeDaemon, page, svc } from "./world.ts";

test("a rotated secret stands alone on stdout, and the end of the old one is shown", async () => {
  const previous = "2026-11-28T09:00:00.000Z";
  const { socket, seen } = await fakeDaemon({
    "POST /v1/webhooks/whk_1/rotate_secret": {
      json: { id: "whk_1", secret: "n".repeat(64), previous_secret_until: previous },
    },
  });
  const ran = await svc(["webhooks", "rotate", "whk_1", "--overlap", "3600"], { socket });
  expect(ran.out).toBe(`${"n".repeat(64)}\n`);
  expect(ran.err).toContain(`also signs until ${previous}`);
  expect(seen[0]?.body).toEqual({ overlap_seconds: 3600 });
});

test("a replay names its events, or a stretch of time in the CLI's own words", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/webhooks/whk_1/replay": { status: 202, json: { queued: 3 } },
  });
  const ran = await svc(["webhooks", "replay", "whk_1", "--event-id", "evt_1,evt_2"], { socket });
  expect(ran.err).toContain("3 events are queued again");
  await svc(["webhooks", "replay", "whk_1", "--since", "2026-11-26T00:00:00Z", "--all"], { socket });
  expect(seen.map(({ body }) => body)).toEqual([
    { event_ids: ["evt_1", "evt_2"] },
    { since: "2026-11-26T00:00:00.000Z", status: "all" },
  ]);
});

test("the attempts at an endpoint are a table of what was answered; --failed and --dead narrow it", async () => {
  const row = {
    event_id: "evt_1",
    attempt: 2,
    status: "failed",
    response_status: 503,
    response_body: "down\u001b[2J",
    error: null,
    duration_ms: 12,
    attempted_at: "2026-11-27T08:00:00.000Z",
    next_attempt_at: null,
  };
  const dead = { ...row, status: "dead_lettered", response_status: null, error: "no answer" };
  const { socket, seen } = await fakeDaemon({ "GET /v1/webhooks/whk_1/deliveries": page([row, dead]) });
  const all = await svc(["webhooks", "deliveries", "whk_1"], { socket });
  expect(all.out).toContain("503 down");
  expect(all.out).toContain("no answer");
  expect(all.out).not.toContain("\u001b[2J");
  await svc(["webhooks", "deliveries", "whk_1", "--failed"], { socket });
  await svc(["webhooks", "deliveries", "whk_1", "--dead", "--event-id", "evt_1"], { socket });
  expect(seen.map(({ query }) => query)).toEqual([
    {},
    { status: "failed,dead_lettered" },
    { status: "dead_lettered", event_id: "evt_1" },
  ]);
  const raw = await svc(["webhooks", "deliveries", "whk_1", "--json"], { socket });
  expect(JSON.parse(raw.out)).toMatchObject({ data: [{ response_status: 503 }, { error: "no answer" }] });
});

test("--follow prints attempts as they are made, retries of older events too, each once, and goes on after a restart", async () => {
  const { ManualClock } = await import("../support/clock.ts");
  const clock = new ManualClock();
  const at = (seconds: number): string => new Date(clock.now() + seconds * 1000).toISOString();
  const attempt = (event: string, number: number, status: string, seconds: number, next: number | null) => ({
    event_id: event,
    attempt: number,
    status,
    response_status: status === "failed" ? 503 : 200,
    response_body: null,
    error: null,
    duration_ms: 5,
    attempted_at: at(seconds),
    next_attempt_at: next === null ? null : at(next),
  });
  const old = attempt("evt_1", 1, "failed", -5, 30);
  const fresh = attempt("evt_2", 1, "failed", 3, 33);
  const retry = attempt("evt_1", 2, "delivered", 31, null);
  let listed = [old];
  let ofOne = [old];
  let restarting = 0;
  const { socket } = await fakeDaemon({
    "GET /v1/webhooks/whk_1/deliveries": ({ query }) => {
      if (restarting-- > 0) return { status: 503, json: { detail: "Stopping." } };
      if (query["event_id"] === undefined) return page(listed);
      return page(query["event_id"] === "evt_1" ? ofOne : [fresh]);
    },
  });
  let out = "";
  void svc(["--json", "webhooks", "deliveries", "whk_1", "--follow"], {
    socket,
    clock,
    printed: (text) => (out += text),
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i += 2) {
      while (clock.pending === 0) await clock.advance(0);
      await clock.advance(2000);
    }
    while (clock.pending === 0) await clock.advance(0);
  };
  await pass(2);
  listed = [fresh, old];
  restarting = 2;
  await pass(4);
  ofOne = [retry, old];
  await pass(60);
  const rows = out
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(rows).toEqual([fresh, retry]);
  expect((await svc(["webhooks", "deliveries", "whk_1", "--follow", "--all"], { socket })).code).toBe(2);
});

test("the secret of a new endpoint stands alone on stdout, and its events may be separated by commas", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/webhooks": { status: 201, json: { id: "whk_1", secret: "s".repeat(64) } },
  });
  const ran = await svc(
    ["webhooks", "create", "https://x.example/hook", "--events", "message.bounced,message.delivered"],
    { socket },
  );
  expect(ran.out).toBe(`${"s".repeat(64)}\n`);
  expect(seen[0]?.body).toEqual({
    url: "https://x.example/hook",
    events: ["message.bounced", "message.delivered"],
  });
  expect(ran.err.trimEnd().split("\n").at(-1)).toBe("Try it: svc webhooks test whk_1");
});

test("the list tells an endpoint of all events from one that names its types", async () => {
  const events = ["message.bounced", "message.complained"];
  const rows = [true, false].map((all_events) => ({
    id: "whk_1",
    url: "https://x.example",
    all_events,
    events,
  }));
  const { socket } = await fakeDaemon({ "GET /v1/webhooks": page(rows) });
  const lines = (await svc(["webhooks", "list"], { socket })).out.trimEnd().split("\n");
  expect(lines.map((line) => line.split("\t")[3])).toEqual(["EVENTS", "all", events.join(", ")]);
});

test("an endpoint is paused and resumed, and a test that it did not take is exit 1", async () => {
  const { socket, seen } = await fakeDaemon({
    "PATCH /v1/webhooks/whk_1": { json: { id: "whk_1", active: false } },
    "POST /v1/webhooks/whk_1/test": {
      json: { delivered: false, status: 500, duration_ms: 12, event_id: "evt_1" },
    },
  });
  await svc(["webhooks", "pause", "whk_1"], { socket });
  await svc(["webhooks", "resume", "whk_1"], { socket });
  expect(seen.map(({ body }) => body)).toEqual([{ active: false }, { active: true }]);
  const ran = await svc(["webhooks", "test", "whk_1", "--event", "message.bounced"], { socket });
  expect(ran).toMatchObject({ code: 1, out: "not accepted: HTTP 500 in 12 ms\n" });
});

test("a test of an endpoint that did not answer says why", async () => {
  const error = "gone.example does not resolve";
  const { socket } = await fakeDaemon({
    "POST /v1/webhooks/whk_1/test": {
      json: { delivered: false, status: null, duration_ms: 12, event_id: "evt_1", error },
    },
  });
  const ran = await svc(["webhooks", "test", "whk_1"], { socket });
  expect(ran).toMatchObject({ code: 1, out: `not accepted: no answer (${error}) in 12 ms\n` });
});

test("tail prints events as they come, drops heartbeats, and says how to go on once the stream ends", async () => {
  const event = (id: string) => ({
    event: "message.bounced",
    event_id: id,
    occurred_at: "2026-11-27T09:00:00.000Z",
    data: {
      message_id: "msg_1",
      to: "a@x.example",
      bounce_classification: "invalid_recipient",
      smtp_response: "550 5.1.1 no such user",
    },
  });
  const text = `\n${JSON.stringify(event("evt_1"))}\n\n${JSON.stringify(event("evt_2"))}\n`;
  const { socket, seen } = await fakeDaemon({
    "GET /v1/events/tail": { text, type: "application/x-ndjson" },
  });
  const ran = await svc(["events", "tail", "--after", "evt_0", "--event", "message.bounced"], { socket });
  expect(seen[0]?.query).toEqual({ after: "evt_0", event: "message.bounced" });
  expect(ran.out.split("\n")[0]).toBe(
    "2026-11-27 09:00:00Z  message.bounced  msg_1  a@x.example  invalid_recipient: 550 5.1.1 no such user",
  );
  expect(ran.code).toBe(6);
  expect(ran.err).toContain("To continue: svc events tail --after evt_2");
  expect((await svc(["events", "tail", "--json"], { socket })).out).toBe(
    `${JSON.stringify(event("evt_1"))}\n${JSON.stringify(event("evt_2"))}\n`,
  );
});

test("a tail that breaks off in the middle of a line is exit 6 with the way to go on", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/events/tail": { text: '{"event_id":"evt_1"}\n{"event', cut: true },
  });
  const ran = await svc(["events", "tail"], { socket });
  expect(ran.code).toBe(6);
  expect(ran.err).toContain("--after evt_1");
});
