// The calls about sender domains. A change is made from the revision that was read, or it is not made.
import type { SenderDomain } from "../../model/domain.ts";

export interface DomainStore {
  /** null where the account has the domain already. Throws LimitReached where it would have more than `most`. */
  createDomain(domain: Omit<SenderDomain, "key">, most?: number): Promise<SenderDomain | null>;
  countDomains(accountKey: number): Promise<number>;
  domainByName(accountKey: number, name: string): Promise<SenderDomain | null>;
  listDomains(accountKey: number): Promise<SenderDomain[]>;
  /**
   * Domains that should be looked at again: those that wait for the DNS (pending, or with a pending key) checked before
   * `pendingBefore`, others before `othersBefore`; of each account up to `limit`, the longest unseen first.
   */
  domainsToCheck(pendingBefore: number, othersBefore: number, limit: number): Promise<SenderDomain[]>;
  /** A domain of any account that was verified has, or once had, this tracking name, and its record was seen. */
  isTrackingName(name: string): Promise<boolean>;
  /** Tracking names, the newest of each account, and of each its first ones before anybody's second. */
  trackingNames(ofAccount: number, ofAll: number): Promise<{ name: string; accountKey: number }[]>;
  /** Everything of it that can change. False: it was changed or deleted since it was read, and nothing was written. */
  saveDomain(domain: SenderDomain): Promise<boolean>;
  deleteDomain(accountKey: number, name: string): Promise<boolean>;
}
