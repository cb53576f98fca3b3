import { ManualClock } from "../support/clock.ts";
import { storeContract } from "./contract/contract.ts";
import type { OpenedStore } from "./contract/opened.ts";
import { newDirectory, openSqlite } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

async function open(): Promise<OpenedStore> {
  const dataDir = newDirectory();
  const clock = new ManualClock();
  const store = await openSqlite(dataDir, clock);
  return {
    store,
    clock,
    async close() {
      await store.close();
      removeFolder(dataDir);
    },
  };
}

storeContract("SQLite", open);
