// `svc limits` against a daemon that answers from a table.
import { expect, test } from "vitest";
import { fakeDaemon, page, svc } from "./world.ts";

const from = { rule: "google", origin: "built_in" };
const held = {
  name: "google",
  connections: 10,
  per_second: 2,
  messages_per_connection: 100,
  tls: null,
  origin: "set",
  from: {
    connections: from,
    per_second: { rule: "google", origin: "set" },
    messages_per_connection: from,
    tls: null,
  },
  slowed: 1,
};
const now = {
  group: "google",
  sending_ip: null,
  connections_open: 3,
  attempts: 2,
  attempts_limit: 5,
  per_second: 1,
  factor: 0.5,
  next_in_seconds: 0.5,
  slowed_since: "2026-11-27T09:00:00.000Z",
  slowed_at: "2026-11-27T09:05:00.000Z",
  slowed_by: "421 4.7.28 \u001b[31m too fast",
};

test("limits are set, reset and unset", async () => {
  const { socket, seen } = await fakeDaemon({
    "PATCH /v1/shaping/google": { json: { name: "google", connections: null, per_second: 2, tls: null } },
    "DELETE /v1/shaping/google": { status: 204 },
  });
  const flags = [
    "--per-second",
    "2",
    "--connections",
    "default",
    "--messages-per-connection",
    "20",
    "--tls",
    "verify",
  ];
  const set = await svc(["limits", "set", "google", ...flags], { socket });
  expect([set.code, set.out.includes("per_second")]).toEqual([0, true]);
  expect(set.err).toContain("svc limits show google");
  expect(seen[0]?.body).toEqual({
    per_second: 2,
    connections: null,
    messages_per_connection: 20,
    tls: "verify",
  });
  expect((await svc(["limits", "set", "google"], { socket })).code).toBe(2);
  expect((await svc(["limits", "set", "google", "--connections", "many"], { socket })).code).toBe(2);
  expect((await svc(["limits", "unset", "google"], { socket })).code).toBe(0);
});

test("what holds is shown with where it comes from, and what a receiver said as text alone", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/shaping": page([held]),
    "GET /v1/shaping/google": { json: { ...held, mx_group: null, now: [now] } },
  });
  const { out } = await svc(["limits", "show", "google"], { socket });
  expect(out).toContain("(google, svc limits)");
  expect(out).toContain("(google, built in)");
  expect(out).toContain("2 of 5");
  expect(out).toContain("421 4.7.28 \\x1b[31m too fast");
  expect((await svc(["limits", "list"], { socket })).out).toContain("svc limits");
});
