// Maintenance mode: until a time, or until the operator ends it, every request to the API is answered 503 with
// Retry-After, SMTP submission 421 and the inbound port 451. Accepted mail is delivered, and webhooks are sent. The
// window is kept in the store, so that a restart does not end it.
import { isoTime, type Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { MaintenanceWindow } from "../model/maintenance.ts";
import type { Store } from "../store/store.ts";

export interface Maintenance {
  /** The window in force now; null: none. */
  window(): MaintenanceWindow | null;
  /** The refusal of a client's request now; null: it is served. */
  refusal(): Refusal | null;
  /** Reads the window from the store: at the start, and after each change. */
  reload(): Promise<void>;
}

/** Retry-After of a window without an end. */
const standardWaitSeconds = 300;

export function createMaintenance(deps: { store: Pick<Store, "maintenance">; clock: Clock }): Maintenance {
  const { store, clock } = deps;
  let written: MaintenanceWindow | null = null;
  const window = (): MaintenanceWindow | null => {
    if (written?.until != null && written.until <= clock.now()) written = null;
    return written;
  };
  return {
    window,
    refusal() {
      const now = window();
      if (!now) return null;
      const { until } = now;
      const seconds = until === null ? standardWaitSeconds : Math.ceil((until - clock.now()) / 1000);
      const end = until === null ? "" : ` until ${isoTime(until)}`;
      return new Refusal("maintenance", `The service is in maintenance${end}.`, {
        retry_after_seconds: Math.max(1, seconds),
      });
    },
    async reload() {
      written = await store.maintenance();
    },
  };
}
