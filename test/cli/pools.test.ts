// `svc pools` and `svc ips` against a daemon that answers from a table.
import { expect, test } from "vitest";
import { fakeDaemon, svc } from "./world.ts";

const ip = { ip_address: "192.0.2.1", ip_pool: "news", hostname: "out.test", weight: 2, status: "active" };
const pool = { name: "news", description: null, is_default: true, ips: [ip] };
const ips = { data: [ip], has_more: false, next_cursor: null };

test("a pool is made, changed, shown with its addresses, and deleted once it is agreed to", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/ip_pools": { status: 201, json: { ...pool, ips: [] } },
    "PATCH /v1/ip_pools/news": { json: pool },
    "GET /v1/ip_pools/news": { json: pool },
    "DELETE /v1/ip_pools/news": { status: 204 },
  });
  const made = await svc(["pools", "create", "news", "--description", "d", "--default"], { socket });
  expect([made.code, seen[0]?.body]).toEqual([0, { name: "news", description: "d", is_default: true }]);
  expect(made.err).toContain("svc ips add ADDRESS --pool news");
  await svc(["pools", "update", "news", "--no-default"], { socket });
  expect(seen.at(-1)?.body).toEqual({ is_default: false });
  expect((await svc(["pools", "update", "news"], { socket })).code).toBe(2);
  expect((await svc(["pool", "show", "news"], { socket })).out).toContain("192.0.2.1");
  expect((await svc(["pools", "delete", "news"], { socket })).code).toBe(2);
  expect((await svc(["pools", "delete", "news", "--yes"], { socket })).code).toBe(0);
});

test("an address is added, and what is done with it later finds its pool", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/ip_pools/news/ips": { status: 201, json: { ...ip, status: "unbindable" } },
    "GET /v1/ips": { json: ips },
    "PATCH /v1/ip_pools/news/ips/192.0.2.1": { json: ip },
    "DELETE /v1/ip_pools/news/ips/192.0.2.1": { status: 204 },
  });
  const flags = ["--pool", "news", "--hostname", "out.test", "--weight", "2", "--warmup"];
  const added = await svc(["ips", "add", "192.0.2.1", ...flags], { socket });
  expect(seen[0]?.body).toEqual({ ip_address: "192.0.2.1", hostname: "out.test", weight: 2, warmup: true });
  expect(added.err).toContain("is not an address of this machine yet");
  for (const [verb, body] of [
    [["pause", "192.0.2.1"], { status: "paused" }],
    [["resume", "192.0.2.1"], { status: "active" }],
    [["move", "192.0.2.1", "--pool", "other"], { ip_pool: "other" }],
  ] as const) {
    expect((await svc(["ips", ...verb], { socket })).code).toBe(0);
    expect(seen.at(-1)).toMatchObject({ method: "PATCH", body });
  }
  expect((await svc(["ips", "remove", "192.0.2.1", "--yes"], { socket })).code).toBe(0);
  expect((await svc(["ips", "pause", "192.0.2.9"], { socket })).code).toBe(3);
  expect((await svc(["ips", "add", "192.0.2.1", "--weight", "0"], { socket })).code).toBe(2);
  expect((await svc(["ips", "list"], { socket })).out).toContain("news");
});

test("the list says of an IPv6 address without a valid reverse name that it is a last resort, and what to publish", async () => {
  const six = { ...ip, ip_address: "2001:db8::1", ptr: "host.test", ptr_ok: false };
  const right = { ...six, ip_address: "2001:db8::2", ptr: "out.test", ptr_ok: true };
  const four = { ...ip, ptr: null, ptr_ok: false };
  const { socket } = await fakeDaemon({ "GET /v1/ips": { json: { ...ips, data: [six, right, four] } } });
  const { err } = await svc(["ips", "list"], { socket });
  expect(err.trim()).toBe(
    "2001:db8::1 is used only where its pool has no other: its PTR record is host.test. To use it, publish a PTR record of 2001:db8::1 with out.test and an AAAA record of out.test with 2001:db8::1.",
  );
});

test("a warm-up is begun and ended, and its status shows what each address has sent of its caps", async () => {
  const warmup = {
    day: 3,
    started_at: "2026-11-27T09:00:00.000Z",
    caps: { google: 100, default: 100 },
    sent_today: { google: 7, default: 100 },
  };
  const warming = { ...ip, status: "warming", warmup };
  const other = { ...ip, ip_address: "192.0.2.2", warmup: null };
  let data: object[] = [warming, other];
  const { socket, seen } = await fakeDaemon({
    "GET /v1/ips": () => ({ json: { ...ips, data } }),
    "PATCH /v1/ip_pools/news/ips/192.0.2.1": { json: warming },
    "GET /v1/messages/msg_1/attempts": { json: { data: [] } },
    "GET /v1/messages/msg_1": { json: { id: "msg_1", ip_pool: "news", recipients: [{ status: "queued" }] } },
    "GET /v1/ip_pools/news": () => ({ json: { ...pool, ips: data } }),
  });
  const status = await svc(["ips", "warmup", "status"], { socket });
  expect(status.out).toMatch(/192\.0\.2\.1\b.*\b3\b.*google 7\/100.*default 100\/100/);
  expect(status.out).not.toContain("192.0.2.2");
  const started = await svc(["ips", "warmup", "start", "192.0.2.1"], { socket });
  expect([started.code, seen.at(-1)?.body]).toEqual([0, { warmup: true }]);
  expect(started.out).toContain("google 7/100");
  expect((await svc(["ips", "warmup", "stop", "192.0.2.1"], { socket })).code).toBe(0);
  expect(seen.at(-1)?.body).toEqual({ warmup: false });
  const trace = () => svc(["messages", "trace", "msg_1"], { socket });
  expect((await trace()).err).not.toContain("warmup");
  data = [warming];
  expect((await trace()).err).toContain("svc ips warmup status");
  data = [];
  expect((await svc(["ips", "warmup", "status"], { socket })).err).toContain("svc ips warmup start ADDRESS");
});

test("the trace and the record of a message that waits for its pool's address say which, and what to do", async () => {
  const statuses = ["unbindable", "paused"];
  const ips = statuses.map((status, i) => ({ ...ip, ip_address: `192.0.2.${i + 1}`, status }));
  let shown: object = { ...pool, ips };
  let status = "queued";
  const { socket } = await fakeDaemon({
    "GET /v1/messages/msg_1/attempts": { json: { data: [] } },
    "GET /v1/messages/msg_1": () => ({ json: { id: "msg_1", ip_pool: "news", recipients: [{ status }] } }),
    "GET /v1/ip_pools/news": () => ({ json: shown }),
  });
  const said = async (verb: string) => {
    const { code, err } = await svc(["messages", verb, "msg_1"], { socket });
    expect(code).toBe(0);
    return err;
  };
  for (const verb of ["trace", "show"]) {
    const err = await said(verb);
    expect(err).toContain("192.0.2.1 of the pool news is not an address of this machine");
    expect(err).toContain("svc ips resume 192.0.2.2");
  }
  shown = { ...pool, ips: [] };
  expect(await said("trace")).toContain("the pool news has no address");
  shown = pool;
  expect(await said("trace")).not.toContain("waits");
  shown = { ...pool, ips };
  status = "delivered";
  expect(await said("trace")).not.toContain("waits");
});
