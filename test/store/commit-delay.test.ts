import { expect, test } from "vitest";
import { createCommitDelay } from "../../src/store/sqlite/engine/commit-delay.ts";
import { noAccount } from "../../src/store/sqlite/engine/write-queue.ts";

const a = 1;
const b = 2;

/** After a batch with the calls of these accounts. */
function after(owners: (number | string)[], { commitMs = 0.3, behind = 0 } = {}) {
  const delay = createCommitDelay();
  delay.left();
  delay.committed(owners, commitMs);
  return (...joined: (number | string)[]): number => {
    for (const owner of joined) delay.joined(owner);
    return delay.waitMs(behind + joined.length);
  };
}

const twenty = Array.from({ length: 20 }, () => a);

test("a batch waits for as many callers as the last one had, two milliseconds at most on a fast disk", () => {
  expect(after(twenty)(a, a, a)).toBe(2);
  expect(after(twenty)(...twenty)).toBe(0);
});

test("on a slow disk it waits for up to half of a sync", () => {
  expect(after(twenty, { commitMs: 10 })(a)).toBe(5);
});

test("after a sync that hung it does not hang as well", () => {
  expect(after(twenty, { commitMs: 10_000 })(a)).toBe(20);
});

test("who is alone is not kept waiting", () => {
  expect(createCommitDelay().waitMs(1)).toBe(0);
  expect(after([a], { commitMs: 10 })(a)).toBe(0);
});

test("an account that had no call in the last batch does not wait for those that filled it", () => {
  expect(after(twenty)(b)).toBe(0);
  expect(after(twenty)(a, b)).toBe(0);
});

test("where a sync takes longer than the wait it waits too, since all would wait for two syncs", () => {
  expect(after(twenty, { commitMs: 10 })(b)).toBe(5);
});

test("accounts that were all in the last batch wait for one another", () => {
  expect(after([a, a, a, b])(b)).toBe(2);
  expect(after([a, a, a, b])(a, b)).toBe(2);
});

test("what is of no account waits for company", () => {
  expect(after(twenty)(noAccount)).toBe(2);
});

test("what found no place in the last batch does not wait once more", () => {
  expect(after(twenty, { behind: 5 })(a)).toBe(0);
});
