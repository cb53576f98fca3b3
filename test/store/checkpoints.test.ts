import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { createCheckpoints } from "../../src/store/sqlite/engine/checkpoints.ts";

const mb = 1024 * 1024;

/** Whether a log of so many megabytes, of which so many are copied, is copied. */
function copies(bytes: number, copiedBytes: number, held = false): boolean {
  let copied = false;
  const look = createCheckpoints({
    heldLog: { held: () => held },
    log: silentLog,
    copy: async () => void (copied = true),
  });
  look({ bytes: bytes * mb, copiedBytes: copiedBytes * mb });
  return copied;
}

test("the log is copied once 64 MB of it are not in the database", () => {
  expect([copies(63, 0), copies(64, 0), copies(120, 64), copies(128, 64)]).toEqual([
    false,
    true,
    false,
    true,
  ]);
});

test("shortly before the writer restarts it, so often that little is left to the writer", () => {
  expect([copies(200, 190), copies(200, 184), copies(255, 239)]).toEqual([false, true, true]);
});

test("a log that the writer restarts, or that a backup reads, is not copied", () => {
  expect([copies(256, 0), copies(100, 0, true)]).toEqual([false, false]);
});
