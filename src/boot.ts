// The boot: this start of the daemon, which is the owner of every lease that it takes, of mail and of webhooks alike. All of
// them last as long as its one row in the store, which a heartbeat renews; once that fails for long no attempt may finish.
import { randomBytes } from "node:crypto";
import type { Clock, Timer } from "./clock.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";
import type { Store } from "./store/store.ts";

export interface Boot extends Service {
  /** The owner of leases. */
  readonly id: string;
  /**
   * The leases of this boot are still its own. By the monotonic clock: what sets the wall clock takes no lease away, nor does
   * a machine that slept, since no other process can have opened the data directory meanwhile.
   */
  leaseValid(): boolean;
}

export interface BootDeps {
  store: Pick<Store, "beginBoot" | "renewBoot" | "endBoot">;
  /** A later start of the same node takes back what this one leaves. */
  node: string;
  clock: Clock;
  log: Log;
  /** Another process has ended this boot: all that it had leased is that one's. */
  onEnded(detail: string): void;
}

const leaseMs = 600_000;
const heartbeatMs = leaseMs / 3;
/** A renewal that the store refused is tried again so soon: as long as none succeeds, attempts are made in vain. */
const retryMs = 1000;

/** Nothing may be leased before it is started, nor after it is stopped. */
export function createBoot({ store, node, clock, log, onEnded }: BootDeps): Boot {
  const id = randomBytes(8).toString("hex");
  let validUntil = -Infinity;
  let heartbeat: Timer | null = null;
  let running = false;
  let failing = false;

  const renew = async (): Promise<void> => {
    const begun = clock.monotonic();
    try {
      const renewed = await store.renewBoot(id, clock.now() + leaseMs);
      if (!running) return;
      if (!renewed) {
        validUntil = -Infinity;
        return onEnded("the leases of this process were ended by another one");
      }
      validUntil = begun + leaseMs;
      failing = false;
    } catch (error) {
      if (!failing)
        log.warn({ err: error }, "the leases of this process were not renewed; it is tried each second");
      failing = true;
    }
    beat();
  };

  const beat = (): void => {
    if (running) heartbeat = clock.after(failing ? retryMs : heartbeatMs, () => void renew());
  };

  return {
    name: "boot",
    id,
    leaseValid: () => clock.monotonic() < validUntil,
    async start() {
      const begun = clock.monotonic();
      await store.beginBoot({ id, node, leaseUntil: clock.now() + leaseMs });
      validUntil = begun + leaseMs;
      running = true;
      beat();
    },
    async stop() {
      running = false;
      validUntil = -Infinity;
      heartbeat?.cancel();
      await store.endBoot(id, clock.now());
    },
  };
}
