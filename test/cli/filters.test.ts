// The filters that lists of messages, queue and events share: their parameters over the socket, and what an API key cannot ask for.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fakeDaemon, page, scratch, svc } from "./world.ts";

const shared = ["to", "from", "domain", "tag", "pool", "ip", "type", "code", "enhanced", "key"];

test.each(["messages", "queue", "events"])("%s list has every shared filter, with globs", async (noun) => {
  const { socket, seen } = await fakeDaemon({ [`GET /v1/${noun}`]: page([]) });
  const ran = await svc([noun, "list", ...shared.flatMap((name) => [`--${name}`, `*${name}*`])], { socket });
  expect(ran).toMatchObject({ code: 0, out: "" });
  expect(seen[0]?.query).toMatchObject(Object.fromEntries(shared.map((name) => [name, `*${name}*`])));
});

test("a value without an asterisk is looked up by the parameter that an API key has as well", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/messages": page([]), "GET /v1/events": page([]) });
  await svc(["messages", "list", "--domain", "x.example", "--pool", "bulk", "--ip", "192.0.2.7"], { socket });
  await svc(["events", "list", "--ip", "192.0.2.7", "--order", "asc"], { socket });
  expect(seen.map(({ query }) => query)).toEqual([
    { to_domain: "x.example", ip_pool: "bulk", ip: "192.0.2.7" },
    { ip_address: "192.0.2.7", order: "asc" },
  ]);
});

test.each([
  [
    ["messages", "list", "--to", "*@b.test"],
    '--to: found "*@b.test", expected no asterisk: patterns are for the server\'s own admin socket',
  ],
  [["messages", "list", "--code", "451"], "--code is for the server's own admin socket, not for an API key"],
  [
    ["events", "list", "--from", "a@b.test"],
    "--from is for the server's own admin socket, not for an API key",
  ],
])("with an API key %j is a usage error that says where it can be asked", async (line, said) => {
  const file = join(scratch(), "key");
  writeFileSync(file, "svc_live_x");
  const ran = await svc(["--url", "https://127.0.0.1:1", "--api-key-file", file, ...line]);
  expect(ran.code).toBe(2);
  expect(ran.err).toContain(said);
});
