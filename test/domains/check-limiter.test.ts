// Domain checks side by side, within bounds.
import { expect, test } from "vitest";
import { createCheckLimiter } from "../../src/domains/check-limiter.ts";

function bench() {
  const limiter = createCheckLimiter();
  const open = new Map<string, () => void>();
  const check = (account: number, name: string): Promise<string> =>
    limiter.run(
      account,
      name,
      () => new Promise((resolve) => open.set(`${account} ${name}`, () => resolve(name))),
    );
  return { check, open };
}
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a silent zone's account has eight checks under way, and another's goes on beside them", async () => {
  const { check, open } = bench();
  for (let n = 0; n < 100; n++) void check(1, `silent${n}.test`);
  const other = check(2, "b.test");
  await settle();
  expect([...open.keys()].filter((name) => name.startsWith("1 "))).toHaveLength(8);
  open.get("2 b.test")?.();
  expect(await other).toBe("b.test");
  open.get("1 silent0.test")?.();
  await settle();
  expect(open.has("1 silent8.test")).toBe(true);
});

test("at most 32 are under way in all, and accounts take turns for what becomes free", async () => {
  const { check, open } = bench();
  for (let account = 1; account <= 6; account++)
    for (let n = 0; n < 10; n++) void check(account, `n${n}.test`);
  await settle();
  expect(open.size).toBe(32);
  open.get("1 n0.test")?.();
  open.get("1 n1.test")?.();
  await settle();
  expect([...open.keys()].slice(32)).toEqual(["5 n0.test", "6 n0.test"]);
});

test("who asks for a check that is under way gets its result", async () => {
  const { check, open } = bench();
  const both = [check(1, "a.test"), check(1, "a.test")];
  await settle();
  expect(open.size).toBe(1);
  open.get("1 a.test")?.();
  expect(await Promise.all(both)).toEqual(["a.test", "a.test"]);
});

test("an account whose line is full is refused, and told when to try again", async () => {
  const { check } = bench();
  for (let n = 0; n < 208; n++) void check(1, `n${n}.test`);
  await expect(check(1, "more.test")).rejects.toMatchObject({
    code: "service_overloaded",
    extras: { retry_after_seconds: 10 },
  });
});
