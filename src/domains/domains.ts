// Sender domains: records to publish, verification, DKIM keys.
import type { SenderDomain, Store } from "../store/store.ts";

export interface Domains {
  /** Makes the DKIM keys and the records to publish, and writes them with `into` where that is given. Throws Refusal validation_failed or conflict. */
  add(accountKey: number, name: string, into?: Pick<Store, "createDomain">): Promise<SenderDomain>;
  /** Asks the DNS and saves what it saw. */
  verify(domain: SenderDomain): Promise<SenderDomain>;
  /** The verified (or degraded) domain that may send for `fromDomain`: itself or a parent (relaxed alignment); else why not. */
  senderFor(
    accountKey: number,
    fromDomain: string,
  ): Promise<{ ok: true; domain: SenderDomain } | { ok: false; domain: SenderDomain | null }>;
  /** Re-checks what is due: pending hourly, others daily. For jobs.ts. */
  recheck(): Promise<void>;
}
