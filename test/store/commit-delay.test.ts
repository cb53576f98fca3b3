import { expect, test } from "vitest";
import { commitDelayMs } from "../../src/store/sqlite/engine/commit-delay.ts";

test("a batch waits for as many callers as the last one had, two milliseconds at most on a fast disk", () => {
  expect(commitDelayMs({ calls: 20, commitMs: 0.3 }, 3)).toBe(2);
  expect(commitDelayMs({ calls: 20, commitMs: 0.3 }, 20)).toBe(0);
});

test("on a slow disk it waits for up to half of a sync", () => {
  expect(commitDelayMs({ calls: 20, commitMs: 10 }, 3)).toBe(5);
});

test("after a sync that hung it does not hang as well", () => {
  expect(commitDelayMs({ calls: 20, commitMs: 10_000 }, 3)).toBe(20);
});

test("who is alone is not kept waiting", () => {
  expect(commitDelayMs({ calls: 0, commitMs: 0 }, 1)).toBe(0);
  expect(commitDelayMs({ calls: 1, commitMs: 10 }, 1)).toBe(0);
});
