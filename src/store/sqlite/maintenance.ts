// The maintenance window: one row, while there is one.
import type { Database } from "better-sqlite3";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { MaintenanceWindow } from "../../model/maintenance.ts";
import { nothing } from "../changes.ts";
import type { MaintenanceStore } from "../interface/maintenance.ts";
import { none, noun } from "./noun.ts";
import { maintenance as table } from "./schema/appliance.ts";

function createMaintenanceWrites(db: Database) {
  const put = db.prepare("INSERT OR REPLACE INTO maintenance (key, since, until) VALUES (1, @since, @until)");
  const remove = db.prepare("DELETE FROM maintenance WHERE key = 1");
  return {
    setMaintenance(window: MaintenanceWindow | null): void {
      if (window === null) remove.run();
      else put.run(window);
    },
  };
}

function createMaintenanceLookups(client: Database) {
  const maintenanceWindow = drizzle({ client })
    .select({ since: table.since, until: table.until })
    .from(table)
    .where(eq(table.key, 1))
    .prepare();
  return { maintenance: () => maintenanceWindow.get() ?? null };
}

export const maintenance = noun({
  commands: createMaintenanceWrites,
  touches: {
    setMaintenance: nothing, // its answers are composed on each request
  },
  lookups: createMaintenanceLookups,
  lists: none,
  calls: ({ write, lookups }): MaintenanceStore => ({
    maintenance: async () => lookups.maintenance(),
    setMaintenance: (window) => write.setMaintenance(window),
  }),
});
