// A store on SQLite for a test, and the values that tests of stores have in common.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../src/log.ts";
import { openStore } from "../../src/store/sqlite/sqlite-store.ts";
import type { StoreOptions } from "../../src/store/sqlite/sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { ManualClock } from "../support/clock.ts";
import { mint } from "./values.ts";

export * from "./values.ts";

export function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "svc-store-"));
}

/** No test here loses the writing thread; one that does says so itself. */
function endTest(detail: string): never {
  throw new Error(`the store's writer ended: ${detail}`);
}

export function openSqlite(
  dataDir: string,
  clock: ManualClock,
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  return openStore({
    dataDir,
    node: "a",
    clock,
    log: silentLog,
    mint,
    minFreeShare: 0,
    onLost: endTest,
    ...options,
  });
}
