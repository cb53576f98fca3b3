import { expect, test } from "vitest";
import { createRowCache } from "../../src/store/cache.ts";
import { createChanges } from "../../src/store/changes.ts";
import { ManualClock } from "../support/clock.ts";

test("a row is read once, and again when the revision is another, whoever has written", () => {
  let [revision, reads] = [7, 0];
  const rows = createRowCache(() => revision);
  const read = () => rows.get("name default", () => ++reads);
  expect([read(), read()]).toEqual([1, 1]);
  revision = 8;
  expect([read(), read()]).toEqual([2, 2]);
});

test("a row that is not there is remembered too", () => {
  const rows = createRowCache(() => 0);
  expect(rows.get("name nobody", () => null)).toBeNull();
  expect(rows.get("name nobody", () => "found")).toBeNull();
});

test("writes to accounts and domains change the revision, no others do", () => {
  const changes = createChanges(new ManualClock(), {
    changeAccount: (touch) => touch(0, "accounts"),
    saveDomain: (touch) => touch(1, "domains"),
    acceptMessage: (touch) => touch(1, "messages"),
  });
  const revisions = ["changeAccount", "acceptMessage", "saveDomain"].map((command) => {
    changes.note(command, null, null);
    return changes.revision();
  });
  expect(revisions[1]).toBe(revisions[0]);
  expect(revisions[2]).not.toBe(revisions[1]);
});
