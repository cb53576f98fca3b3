import { expect, test } from "vitest";
import { IdleSessions } from "../../src/delivery/idle-sessions.ts";
import type { Session } from "../../src/delivery/session.ts";

const session = (key: string, group = key, host = key): Session =>
  ({ target: { key, group, host } }) as unknown as Session;

test("the session that was used last is taken, and each once", () => {
  const idle = new IdleSessions(9);
  const [first, last] = [session("a"), session("a")];
  idle.add(first, 1);
  idle.add(last, 2);
  expect(idle.take("a")).toBe(last);
  expect(idle.take("a")).toBe(first);
  expect(idle.take("a")).toBeNull();
  expect([idle.has("a"), idle.hasHost("a", "a"), [...idle].length]).toEqual([false, false, 0]);
});

test("where all places are taken, a destination without one displaces another's second, the longest idle first", () => {
  const idle = new IdleSessions(3);
  const [old, young] = [session("a"), session("a")];
  for (const [at, one] of [old, young, session("b")].entries()) idle.add(one, at);
  expect(idle.add(session("c"), 4).leaves).toBe(old);
  expect([...idle].map(({ session: { target } }) => target.key)).toEqual(["a", "b", "c"]);
});

test("where every destination has one, the places stay as they are", () => {
  const idle = new IdleSessions(2);
  for (const key of ["a", "b"]) idle.add(session(key), 0);
  const [late, second] = [session("c"), session("a")];
  expect(idle.add(late, 1).leaves).toBe(late);
  expect(idle.add(second, 1).leaves).toBe(second);
  expect([...idle].map(({ session: { target } }) => target.key)).toEqual(["a", "b"]);
});

test("the longest idle is known of all and of a group; one that is removed is gone from every list", () => {
  const idle = new IdleSessions(9);
  const { idle: first } = idle.add(session("a", "x", "mx1"), 1);
  idle.add(session("b", "y", "mx2"), 2);
  const { idle: third } = idle.add(session("c", "x", "mx3"), 3);
  expect(idle.longest()).toBe(first);
  idle.remove(first);
  idle.remove(first);
  expect(idle.longest("x")).toBe(third);
  expect(idle.longest()?.since).toBe(2);
  expect([idle.hasHost("x", "mx1"), idle.hasHost("x", "mx3"), idle.longest("z")]).toEqual([
    false,
    true,
    null,
  ]);
});
