// Verbs that are data name routes of the API, and members that their bodies take.
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as accounts from "../../src/cli/commands/accounts.ts";
import * as blacklists from "../../src/cli/commands/blacklists.ts";
import * as inbox from "../../src/cli/commands/inbox.ts";
import * as keys from "../../src/cli/commands/keys.ts";
import * as limits from "../../src/cli/commands/limits.ts";
import * as lockouts from "../../src/cli/commands/lockouts.ts";
import * as maintenance from "../../src/cli/commands/maintenance.ts";
import * as pools from "../../src/cli/commands/pools.ts";
import * as credentials from "../../src/cli/commands/smtp-credentials.ts";
import * as suppressions from "../../src/cli/commands/suppressions.ts";
import * as webhooks from "../../src/cli/commands/webhooks.ts";
import type { Verb } from "../../src/cli/verbs.ts";
import { routesAsData } from "../support/program.ts";
import { fakeDaemon, svc } from "./world.ts";

const nouns: Record<string, { verbs: readonly Verb[] }> = {
  accounts,
  "blacklists zones": blacklists,
  inbox,
  keys,
  limits,
  lockouts,
  maintenance,
  pools,
  "smtp-credentials": credentials,
  suppressions,
  webhooks,
};
const verbs = Object.entries(nouns).flatMap(([noun, { verbs: own }]) =>
  own.map((verb): [string, Verb] => [`${noun} ${verb.name}`, verb]),
);
const routes = routesAsData().filter(({ listeners }) => listeners !== "public");
const routeOf = (verb: Verb) => {
  const name = "lists" in verb ? `GET ${verb.lists}` : verb.route;
  return routes.find(({ method, path }) => `${method} ${path}` === name);
};

describe.each(verbs)("svc %s", (_name, verb) => {
  test("calls a route of the operator's socket", () => {
    expect(routeOf(verb)).toBeDefined();
  });

  test("sets only members that the body of the route has", () => {
    if ("lists" in verb) return expect(routeOf(verb)?.method).toBe("GET");
    const members = [
      ...(verb.takes ?? []),
      ...(verb.flags ?? []).map(({ member }) => member),
      ...Object.keys(verb.body ?? {}),
    ];
    const body = routeOf(verb)?.body;
    const known = body instanceof z.ZodObject ? Object.keys(body.shape) : [];
    expect(members.filter((member) => !known.includes(member))).toEqual([]);
  });
});

const pool = { name: "bulk", is_default: false, ips: [] };

test("arguments, flags and their absence become the body", async () => {
  const { socket, seen } = await fakeDaemon({ "POST /v1/ip_pools": { status: 201, json: pool } });
  await svc(["pools", "create", "bulk", "--description", "newsletters"], { socket });
  await svc(["pools", "create", "bulk", "--default"], { socket });
  expect(seen.map(({ body }) => body)).toEqual([
    { name: "bulk", description: "newsletters" },
    { name: "bulk", is_default: true },
  ]);
});

test("a parameter of the path is percent-encoded", async () => {
  const { socket, seen } = await fakeDaemon({ "PATCH /v1/ip_pools/a%2Fb": { status: 200, json: pool } });
  const ran = await svc(["pools", "update", "a/b", "--no-default"], { socket });
  expect(ran.code).toBe(0);
  expect(seen[0]?.body).toEqual({ is_default: false });
});

test("a change that names nothing is refused with the flags that there are", async () => {
  const { socket, seen } = await fakeDaemon({});
  const ran = await svc(["webhooks", "update", "whk_1"], { socket });
  expect(ran).toMatchObject({ code: 2 });
  expect(ran.err).toContain("nothing to change: give --new-url, --events, --description or --format");
  expect(seen).toEqual([]);
});

test("without a terminal a question needs --yes", async () => {
  const { socket, seen } = await fakeDaemon({ "DELETE /v1/ip_pools/bulk": { status: 204, text: "" } });
  expect(await svc(["pools", "delete", "bulk"], { socket })).toMatchObject({ code: 2 });
  expect(seen).toEqual([]);
  expect(await svc(["pools", "delete", "bulk", "--yes"], { socket })).toMatchObject({
    code: 0,
    err: "bulk is deleted\n",
  });
});

test.each(["a\nb", "\u00e9", "", "k".repeat(256)])(
  "messages resend: the key %j is a usage error, and nobody is asked",
  async (key) => {
    const { socket, seen } = await fakeDaemon({});
    const ran = await svc(["messages", "resend", "msg_1", "--idempotency-key", key], { socket });
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining("1 to 255 printable ASCII")]);
    expect(seen).toEqual([]);
  },
);
