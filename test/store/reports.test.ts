import { rmSync } from "node:fs";
import { ManualClock } from "../support/clock.ts";
import { newDirectory, openSqlite } from "./fixtures.ts";
import { reportsContract } from "./reports-contract.ts";

reportsContract("SQLite", async () => {
  const dataDir = newDirectory();
  const clock = new ManualClock();
  const store = await openSqlite(dataDir, clock);
  return {
    store,
    clock,
    async close() {
      await store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
});
