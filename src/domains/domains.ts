// Sender domains: records to publish, verification, DKIM keys.
import type { DomainStatus, SenderDomain } from "../model/domain.ts";
import type { Store } from "../store/store.ts";
import type { OwnDkim } from "./keys.ts";

/** Where a change is written: the store, or the view of it that keeps a request's answer with the change. */
export type DomainWriting = Pick<Store, "createDomain" | "saveDomain">;

/** What of a domain can be set. `returnPathDomain` null: the one that a domain has where none is chosen. */
export type DomainChange = Partial<
  Pick<SenderDomain, "trackingEnabled" | "trackOpens" | "trackClicks" | "trackingDomain" | "allowSubdomains">
> & { returnPathDomain?: string | null };

/** `domain` as it is now, and its status before. */
export type StatusListener = (domain: SenderDomain, before: DomainStatus) => void;

export interface Domains {
  /**
   * Makes the DKIM keys and the records to publish, and writes them with `into` where that is given. Throws Refusal
   * validation_failed or conflict, and LimitReached where the account would have more than `most`.
   */
  add(
    accountKey: number,
    name: string,
    into?: DomainWriting,
    dkim?: OwnDkim,
    most?: number,
  ): Promise<SenderDomain>;
  /** Sets the given fields; the next round of re-checks verifies its new records. Throws Refusal validation_failed or conflict. */
  update(domain: SenderDomain, change: DomainChange, into?: DomainWriting): Promise<SenderDomain>;
  /** New keys of both kinds, pending until they are seen in the DNS; those that were pending are dropped. Throws Refusal validation_failed or conflict. */
  rotate(domain: SenderDomain, dkim: OwnDkim, into?: DomainWriting): Promise<SenderDomain>;
  /** Suspends the domain: it cannot send until the operator resumes it and it is verified again. Throws Refusal conflict. */
  suspend(domain: SenderDomain, into?: DomainWriting): Promise<SenderDomain>;
  resume(domain: SenderDomain, into?: DomainWriting): Promise<SenderDomain>;
  /** Asks the DNS and saves what it saw. */
  verify(domain: SenderDomain): Promise<SenderDomain>;
  /** The verified (or degraded) domain that may send for `fromDomain`: itself or a parent (relaxed alignment); else why not. */
  senderFor(
    accountKey: number,
    fromDomain: string,
  ): Promise<{ ok: true; domain: SenderDomain } | { ok: false; domain: SenderDomain | null }>;
  /** Checks the DNS records that are due: hourly of domains that are not verified, daily of the others. */
  recheck(): Promise<void>;
  /** Called when a DNS check changed a domain's status, after that is written. */
  onStatus(listener: StatusListener): void;
}
