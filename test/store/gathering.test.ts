import { expect, test } from "vitest";
import { gatheringMs } from "../../src/store/gathering.ts";

test("a batch waits for as many callers as the last one had, two milliseconds at most on a fast disk", () => {
  expect(gatheringMs({ calls: 20, commitMs: 0.3 }, 3)).toBe(2);
  expect(gatheringMs({ calls: 20, commitMs: 0.3 }, 20)).toBe(0);
});

test("on a slow disk it waits for up to half of a sync", () => {
  expect(gatheringMs({ calls: 20, commitMs: 10 }, 3)).toBe(5);
});

test("after a sync that hung it does not hang as well", () => {
  expect(gatheringMs({ calls: 20, commitMs: 10_000 }, 3)).toBe(20);
});

test("who is alone is not kept waiting", () => {
  expect(gatheringMs({ calls: 0, commitMs: 0 }, 1)).toBe(0);
  expect(gatheringMs({ calls: 1, commitMs: 10 }, 1)).toBe(0);
});
