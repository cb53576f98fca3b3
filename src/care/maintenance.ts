// Maintenance: the operator closes the door to clients, until a time or until it is opened again. Every request to the
// API meets 503 with Retry-After, submission by SMTP 421, the inbound port 451; what was accepted is delivered, and
// webhooks go out. It is kept in the store, so that a restart in the middle of it opens nothing, and ends by itself.
import { isoTime, type Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { MaintenanceWindow } from "../model/maintenance.ts";
import type { Store } from "../store/store.ts";

export interface Maintenance {
  /** What is in force now. */
  window(): MaintenanceWindow | null;
  /** What a client meets now; null: it may come in. */
  refusal(): Refusal | null;
  /** Reads what was written: at the start, and after each change. */
  reload(): Promise<void>;
}

/** What a client is asked to wait where no time was given. */
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
