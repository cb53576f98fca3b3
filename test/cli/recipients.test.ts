import { expect, test } from "vitest";
import { fakeDaemon, svc } from "./world.ts";

const route = "POST /v1/recipients/forget";
const answer = { messages: 1, recipients: 2, canceled: 1, content: 2, events: 3, inbox: 0, under_way: 0 };
const args = ["recipients", "forget", "ann@a.test"];

test("a person is forgotten only once the address was typed or confirmed", async () => {
  const { socket, seen } = await fakeDaemon({ [route]: { json: { ...answer, has_more: false } } });
  expect((await svc(args, { socket })).err).toContain("Add --confirm ann@a.test");
  expect((await svc([...args, "--confirm", "bob@a.test"], { socket })).code).toBe(2);
  expect((await svc(args, { socket, tty: true, stdin: "y\n" })).code).toBe(2);
  expect(seen).toHaveLength(0);
  expect((await svc(args, { socket, tty: true, stdin: "ann@a.test\n" })).code).toBe(0);
  expect(seen.map(({ body }) => body)).toEqual([{ email: "ann@a.test" }]);
});

test("it goes on until there is no more, sums up, and names what could not go yet", async () => {
  let asked = 0;
  const kept = { content_kept: 1, content_kept_in: ["msg_1"], under_way: 4 };
  const { socket, seen } = await fakeDaemon({
    [route]: () => ({ json: { ...answer, ...kept, has_more: ++asked < 3 } }),
  });
  const ran = await svc([...args, "--confirm", "ann@a.test"], { socket });
  expect([ran.code, seen.length]).toEqual([0, 3]);
  expect(ran.out).toMatch(/recipients +6\b/);
  expect(ran.err).toContain("msg_1");
  expect(ran.err).toContain("4 recipients are being delivered now");
});
