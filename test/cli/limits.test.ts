// `svc accounts`, and --rate and --quota of accounts and keys.
import { expect, test } from "vitest";
import { fakeDaemon, page, svc } from "./world.ts";

const shop = { id: "acct_1", name: "shop", status: "active", rates: {}, daily_quota: null };

test("limits are set in one request, whatever the form in which they are given", async () => {
  const { socket, seen } = await fakeDaemon({
    "PATCH /v1/accounts/shop": { json: { ...shop, daily_quota: 9 } },
  });
  const args = ["--rate", "messages-write=500/400,account=2000/2000", "--rate", "events-read=default"];
  const ran = await svc(["accounts", "set", "shop", ...args, "--quota", "1000"], { socket });
  expect(ran).toMatchObject({ code: 0, out: expect.stringContaining("daily_quota") });
  expect(seen[0]?.body).toEqual({
    rates: {
      "messages-write": { burst: 500, per_second: 400 },
      account: { burst: 2000, per_second: 2000 },
      "events-read": null,
    },
    daily_quota: 1000,
  });
  await svc(["accounts", "set", "shop", "--quota", "none"], { socket });
  expect(seen[1]?.body).toEqual({ daily_quota: null });
});

test("a key's name, networks and limits are changed by its id", async () => {
  const { socket, seen } = await fakeDaemon({ "PATCH /v1/keys/key_1": { json: { id: "key_1" } } });
  const args = ["--name", "till", "--allow-ip", "10.0.0.0/8,::1", "--quota", "5"];
  expect((await svc(["keys", "set", "key_1", ...args], { socket })).code).toBe(0);
  expect(seen[0]?.body).toEqual({ name: "till", allow_ips: ["10.0.0.0/8", "::1"], daily_quota: 5 });
  await svc(["keys", "set", "key_1", "--allow-ip", "any"], { socket });
  expect(seen[1]?.body).toEqual({ allow_ips: [] });
});

test.each([
  [["--rate", "messages-write"], 'found "messages-write", expected a bucket and its rate'],
  [["--rate", "messages-write=0/5"], "expected a bucket and its rate"],
  [
    ["--rate", "mesages-write=5/5"],
    '--rate: found the bucket "mesages-write", expected one of messages-write, messages-read, ',
  ],
  [["--rate", "account=5/5"], '--rate: found the bucket "account", expected one of'],
  [["--quota", "many"], "expected a number of messages or none"],
  [[], "nothing to change"],
])("limits that cannot be read are exit 2 and ask for nothing: %j", async (args, told) => {
  const { socket, seen } = await fakeDaemon({});
  const ran = await svc(["keys", "set", "key_1", ...args], { socket });
  expect([ran.code, seen.length]).toEqual([2, 0]);
  expect(ran.err).toContain(told);
});

test.each([
  ["webhoks=2", "expected one of webhooks, domains, suppressions, ip_pools, ip_addresses, queue, queue_mb"],
  ["webhooks=x", "expected a limit and its number"],
])("a limit of an account that cannot be read is exit 2 and asks for nothing: %s", async (given, told) => {
  const { socket, seen } = await fakeDaemon({});
  const ran = await svc(["accounts", "set", "shop", "--limit", given], { socket });
  expect([ran.code, seen.length]).toEqual([2, 0]);
  expect(ran.err).toContain(told);
});

test("accounts are made, listed, suspended and resumed by name", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/accounts": { status: 201, json: shop },
    "GET /v1/accounts": page([shop]),
    "POST /v1/accounts/shop/suspend": { json: { ...shop, status: "suspended" } },
    "POST /v1/accounts/shop/resume": { json: shop },
  });
  const made = await svc(["accounts", "create", "shop"], { socket });
  expect(seen[0]?.body).toEqual({ name: "shop" });
  expect(made.err).toContain("--account shop keys create");
  expect((await svc(["account", "list"], { socket })).out).toContain("shop");
  expect((await svc(["accounts", "suspend", "shop"], { socket })).out).toBe("shop is suspended\n");
  expect((await svc(["accounts", "resume", "shop"], { socket })).out).toBe("shop is active\n");
});

test("an account is deleted only by who names it a second time", async () => {
  const { socket, seen } = await fakeDaemon({ "DELETE /v1/accounts/shop": { status: 204 } });
  const unasked = await svc(["accounts", "delete", "shop"], { socket });
  expect([unasked.code, seen.length]).toEqual([2, 0]);
  expect(unasked.err).toContain("--confirm shop");
  expect((await svc(["accounts", "delete", "shop", "--confirm", "stop"], { socket })).code).toBe(2);
  expect((await svc(["accounts", "delete", "shop", "--confirm", "shop"], { socket })).code).toBe(0);
  expect(seen).toHaveLength(1);
});

test("the audit log of one account is listed by who did what, and all of it comes as CSV", async () => {
  const row = {
    at: "2026-11-27T09:00:00.000Z",
    actor: { kind: "operator", name: "ann" },
    action: "keys.create",
  };
  const { socket, seen } = await fakeDaemon({
    "GET /v1/audit": ({ headers }) =>
      headers.accept === "text/csv" ? { text: "at,actor\r\n", type: "text/csv" } : page([row]),
  });
  const ran = await svc(["--account", "shop", "audit", "list", "--action", "keys.*", "--since", "1h"], {
    socket,
  });
  expect(ran.out).toContain("ann\tkeys.create");
  expect(seen[0]?.query).toEqual({ account: "shop", action: "keys.*", since: "2026-11-27T08:00:00.000Z" });
  const all = await svc(["audit", "export", "--actor", "ann", "--until", "1h"], { socket });
  expect(all.out).toBe("at,actor\r\n");
  expect(seen[1]?.query).toEqual({ actor: "ann", until: "2026-11-27T08:00:00.000Z" });
});

test("limits are shown as the flags that set them have them, and what null stands for in words", async () => {
  const rates = { "messages-write": { burst: 500, per_second: 400 } };
  const limits = { webhooks: 50, queue: null, queue_mb: 200 };
  const { socket } = await fakeDaemon({
    "GET /v1/accounts/shop": { json: { ...shop, rates, limits } },
    "GET /v1/accounts": page([{ ...shop, rates }]),
    "GET /v1/keys/key_1": { json: { id: "key_1", rates: {}, daily_quota: null } },
  });
  const shown = (await svc(["accounts", "show", "shop"], { socket })).out;
  const words = shown.split("\n").map((line) => line.replace(/ {2,}/, ": "));
  expect(words).toEqual(
    expect.arrayContaining([
      "rates: messages-write=500/400",
      "daily_quota: none",
      "limit webhooks: 50 webhook endpoints",
      "limit queue: half of what the other accounts leave, in unsent recipients",
      "limit queue_mb: 200 megabytes of unsent content",
    ]),
  );
  expect(shown).not.toMatch(/[{}]|null/);
  expect((await svc(["accounts", "list"], { socket })).out).toContain("messages-write=500/400");
  expect((await svc(["keys", "show", "key_1"], { socket })).out).toMatch(/rates +default/);
  const json = (await svc(["--json", "accounts", "show", "shop"], { socket })).out;
  expect(JSON.parse(json)).toMatchObject({ limits });
});
