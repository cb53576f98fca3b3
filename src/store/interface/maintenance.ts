// The calls of the maintenance window, of which there is one for the whole appliance.
import type { MaintenanceWindow } from "../../model/maintenance.ts";

export interface MaintenanceStore {
  maintenance(): Promise<MaintenanceWindow | null>;
  /** null ends it. */
  setMaintenance(window: MaintenanceWindow | null): Promise<void>;
}
