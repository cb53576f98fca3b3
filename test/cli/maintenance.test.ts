import { expect, test } from "vitest";
import { fakeDaemon, svc } from "./world.ts";

test("maintenance is begun until a time or for a span, and ended", async () => {
  const until = "2026-11-27T10:00:00.000Z";
  const { socket, seen } = await fakeDaemon({
    "POST /v1/maintenance": ({ body }) => ({
      json: { active: true, since: "s", until: null, ...Object(body) },
    }),
    "DELETE /v1/maintenance": { status: 204 },
  });
  const ran = await svc(["maintenance", "on", "--until", until], { socket });
  expect([ran.code, ran.out]).toEqual([0, `in maintenance until ${until}\n`]);
  expect(ran.err).toContain("maintenance off");
  expect((await svc(["maintenance", "on"], { socket })).out).toBe("in maintenance until it is ended\n");
  expect((await svc(["maintenance", "on", "--until", "soon"], { socket })).code).toBe(2);
  expect((await svc(["maintenance", "off"], { socket })).code).toBe(0);
  expect(seen.map(({ method, body }) => [method, body])).toEqual([
    ["POST", { until }],
    ["POST", {}],
    ["DELETE", undefined],
  ]);
});

test("the status says that clients are not let in, and whose sending is paused, why and what ends it", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/status": {
      json: {
        queue: { held: 12 },
        store: {},
        maintenance: { since: "2026-11-27T09:00:00.000Z", until: null },
        paused_accounts: [{ name: "shop", paused_at: "t", pause_reason: "too many bounces" }],
        pool_problems: [
          {
            problem: "no address of the pool news can be used: 192.0.2.9 is not an address of this machine",
            effect: "Mail of the pool news waits.",
            advice: [
              "configure 192.0.2.9 on this machine, or take it out of the pool: svc ips remove 192.0.2.9",
            ],
          },
        ],
      },
    },
  });
  const { out, err } = await svc(["status"], { socket });
  expect(out).toContain("12 held");
  expect(err).toContain("In maintenance since 2026-11-27T09:00:00.000Z");
  expect(err).toContain("Sending of shop is paused: too many bounces. To end it: svc accounts resume shop");
  expect(err).toContain(
    "No address of the pool news can be used: 192.0.2.9 is not an address of this machine. Mail",
  );
  expect(err).toContain("svc ips remove 192.0.2.9");
});

test("the status names the commands by the name that the program was called by", async () => {
  const advice = [
    "resume it: svc ips resume 192.0.2.1",
    "add an address: svc --account shop ips add ADDRESS --pool news",
  ];
  const pool_problems = [{ problem: "the pool news has no address", effect: "Mail waits.", advice }];
  const { socket } = await fakeDaemon({
    "GET /v1/status": { json: { queue: {}, store: {}, pool_problems } },
  });
  const { err } = await svc(["status"], { socket, env: { SVC_CALLED_AS: "bin/svc" } });
  expect(err).toContain("resume it: bin/svc ips resume 192.0.2.1\n");
  expect(err).toContain("add an address: bin/svc --account shop ips add ADDRESS --pool news\n");
});
