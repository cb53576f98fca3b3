import { rmSync } from "node:fs";
import { ManualClock } from "../support/clock.ts";
import { storeContract } from "./contract.ts";
import { newDirectory, openSqlite } from "./fixtures.ts";

storeContract("SQLite", async () => {
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
