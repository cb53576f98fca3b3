// `svc queue` against a daemon that answers from a table.
import { expect, test } from "vitest";
import { fakeDaemon, svc } from "./world.ts";

test("an act goes on until the daemon says that nothing is left, and adds up", async () => {
  const pages = [
    { recipients: 500, has_more: true, next_cursor: "next" },
    { recipients: 1, has_more: false, next_cursor: null },
  ];
  const { socket, seen } = await fakeDaemon({
    "POST /v1/queue/retry": () => ({ json: pages.shift() }),
  });
  const ran = await svc(["queue", "retry", "--domain", "a.test", "--code", "4*", "--yes"], { socket });
  expect(ran).toMatchObject({ code: 0, out: "501 recipients due now\n" });
  expect(seen.map(({ body }) => body)).toEqual([
    { domain: "a.test", code: "4*" },
    { domain: "a.test", code: "4*", cursor: "next" },
  ]);
});

test("without a terminal an act says how many recipients it is about and which flag answers, and does nothing", async () => {
  const counted = { by: "status", recipients: 3, held: 1, groups: [], complete: true };
  const { socket, seen } = await fakeDaemon({ "GET /v1/queue/count": { json: counted } });
  const ran = await svc(["queue", "delete", "--pool", "bulk"], { socket });
  expect(ran.code).toBe(2);
  expect(ran.err).toContain("3 recipients, 1 of them held. Delete them? This cannot be undone.");
  expect(ran.err).toContain("--yes");
  expect(seen.map(({ query }) => query)).toEqual([{ pool: "bulk", by: "status" }]);
});

test("where nothing matches an act asks nothing and changes nothing", async () => {
  const counted = { by: "status", recipients: 0, held: 0, groups: [], complete: true };
  const { socket, seen } = await fakeDaemon({ "GET /v1/queue/count": { json: counted } });
  const ran = await svc(["queue", "delete", "--pool", "bulk"], { socket });
  expect(ran).toMatchObject({ code: 0, out: "0 recipients; nothing to do\n" });
  expect(seen).toHaveLength(1);
});

test("a pause of more than a pool says that it is every account's, and whose mail the count is", async () => {
  const counted = { by: "status", recipients: 3, held: 0, groups: [], complete: true };
  const { socket } = await fakeDaemon({ "GET /v1/queue/count": { json: counted } });
  const asked = async (...scope: string[]) => (await svc(["queue", "pause", ...scope], { socket })).err;
  expect(await asked("--domain", "a.test")).toContain(
    "3 recipients of this account. Pause the domain a.test, of every account?",
  );
  expect(await asked("--provider", "google")).toContain("3 recipients of this account last tried there.");
  expect(await asked("--pool", "bulk")).toContain("3 recipients. Pause the pool bulk?");
});

test("an act without a filter needs --all; a pause needs exactly one thing", async () => {
  const { socket, seen } = await fakeDaemon({});
  for (const args of [
    ["fail", "--yes"],
    ["pause", "--yes"],
    ["pause", "--domain", "a.test", "--ip", "192.0.2.1", "--yes"],
    ["resume"],
    ["pause", "--domain", "a.test", "--for", "soon", "--yes"],
  ])
    expect((await svc(["queue", ...args], { socket })).code).toBe(2);
  expect(seen).toEqual([]);
});

test("a Message-ID that names its message costs no search; another is searched page by page", async () => {
  const header = "<01m8e3q8m0qzwywjj2pzsz2j8c.abcdefghijklmnop@mail.acme.example>";
  const id = "msg_01m8e3q8m0qzwywjj2pzsz2j8c";
  const pages = [
    { data: [], has_more: true, next_cursor: "next" },
    { data: [{ id: "msg_2" }], has_more: false, next_cursor: null },
  ];
  const { socket, seen } = await fakeDaemon({
    [`GET /v1/messages/${id}`]: { json: { message_id_header: header } },
    [`GET /v1/messages/${id}/attempts`]: { json: { data: [] } },
    "GET /v1/messages": () => ({ json: pages.shift() }),
    "GET /v1/messages/msg_2/attempts": { json: { data: [] } },
  });
  await svc(["messages", "trace", header], { socket });
  expect(seen.filter(({ path }) => path === "/v1/messages")).toEqual([]);
  await svc(["messages", "trace", "abc@theirs.example"], { socket });
  expect(seen.filter(({ path }) => path === "/v1/messages").map(({ query }) => query)).toEqual([
    { message_id_header: "<abc@theirs.example>", limit: "1" },
    { message_id_header: "<abc@theirs.example>", limit: "1", cursor: "next" },
  ]);
  expect(seen.map(({ path }) => path)).toContain("/v1/messages/msg_2/attempts");
});
