// `svc blacklists` against a daemon that answers from a table.
import { expect, test } from "vitest";
import { fakeDaemon, page, svc } from "./world.ts";

const at = (status: string, over: object = {}) => ({
  blacklist_name: "Test",
  blacklist_zone: "bl.test",
  status,
  last_answer: status,
  detail: null,
  return_codes: [],
  listing_reason: null,
  removal_url: "https://bl.test/remove",
  listed_at: null,
  looked_at: null,
  ...over,
});
const ip = (listed: boolean) => ({
  ip_address: "11.22.33.44",
  affected_pools: ["default"],
  listed,
  blacklists: [
    at(listed ? "listed" : "not_listed", {
      return_codes: listed ? [{ code: "127.0.0.2", meaning: null }] : [],
      listing_reason: listed ? "spam \u001b[31m" : null,
    }),
    at("unknown", { blacklist_zone: "x.test", detail: "timed out" }),
  ],
});

test("a check shows each address at each blocklist, and exits with 7 where one is listed", async () => {
  const { socket, seen } = await fakeDaemon({ "POST /v1/blacklists/check": { json: { data: [ip(true)] } } });
  const ran = await svc(["blacklists", "check", "11.22.33.44"], { socket });
  expect(seen[0]?.body).toEqual({ ip_address: "11.22.33.44" });
  expect(ran.code).toBe(7);
  expect(ran.out).toMatch(/11\.22\.33\.44\tbl\.test\tlisted\t127\.0\.0\.2/);
  expect(ran.out).not.toContain("\u001b[31m");
  expect(ran.err).toContain("on a blocklist: 11.22.33.44");
});

test("a check that finds nothing exits with 0; without addresses it says what is looked up", async () => {
  const clean = await fakeDaemon({ "POST /v1/blacklists/check": { json: { data: [ip(false)] } } });
  expect((await svc(["blacklist", "check"], { socket: clean.socket })).code).toBe(0);
  expect(clean.seen[0]?.body).toEqual({});
  const none = await fakeDaemon({ "POST /v1/blacklists/check": { json: { data: [] } } });
  const ran = await svc(["blacklists", "check"], { socket: none.socket });
  expect([ran.code, ran.err]).toEqual([0, expect.stringContaining("behind NAT")]);
});

test("the list has a row an address, with the zones that list it and those that are unknown", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/blacklists": page([ip(true)]) });
  const { out } = await svc(["blacklists", "list"], { socket });
  expect(out).toMatch(/11\.22\.33\.44\tdefault\tyes\tbl\.test\tx\.test/);
});

test("zones are added with codes, tested with exit 7 where they cannot be used, and removed once it is agreed to", async () => {
  const zone = { zone: "bl.test", name: "bl.test", health: "broken", detail: "lists 127.0.0.1" };
  const { socket, seen } = await fakeDaemon({
    "POST /v1/blacklists/zones": { status: 201, json: zone },
    "POST /v1/blacklists/zones/bl.test/test": { json: zone },
    "DELETE /v1/blacklists/zones/bl.test": { status: 204 },
  });
  const flags = ["--codes", "127.0.0.2, 127.0.0.4-127.0.0.7", "--removal-url", "https://bl.test/"];
  const added = await svc(["blacklists", "zones", "add", "bl.test", ...flags], { socket });
  expect([added.code, seen[0]?.body]).toEqual([
    0,
    { zone: "bl.test", codes: ["127.0.0.2", "127.0.0.4-127.0.0.7"], removal_url: "https://bl.test/" },
  ]);
  const tested = await svc(["blacklists", "zones", "test", "bl.test"], { socket });
  expect([tested.code, tested.err]).toEqual([
    7,
    expect.stringContaining("bl.test is broken: lists 127.0.0.1"),
  ]);
  expect((await svc(["blacklists", "zones", "remove", "bl.test"], { socket })).code).toBe(2);
  expect((await svc(["blacklists", "zones", "remove", "bl.test", "--yes"], { socket })).code).toBe(0);
});
