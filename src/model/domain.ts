// A sender domain: what an account sends from, with its DKIM keys and the records that it should publish.
// Verification, and when a status changes: domains/check.ts.
import type { DkimKey } from "./dkim-key.ts";
import type { DnsRecord } from "./dns-record.ts";

/** `degraded`: was verified, fails now, and still sends for a while. `suspended`: the operator stopped it. */
export const domainStatuses = ["pending", "verified", "degraded", "failed", "suspended"] as const;
export type DomainStatus = (typeof domainStatuses)[number];

export interface SenderDomain {
  key: number;
  id: string; // dom_…
  accountKey: number;
  /** A-label, lower case. */
  name: string;
  status: DomainStatus;
  returnPathDomain: string;
  /** The one before it, which mail carries until the records of the new one are seen; null: they are. */
  returnPathBefore: string | null;
  records: DnsRecord[];
  dkimKeys: DkimKey[];
  createdAt: number;
  updatedAt: number;
  verifiedAt: number | null;
  checkedAt: number | null;
  /** When a verified domain began to fail; null while it passes. */
  failingSince: number | null;
  /** Messages may be tracked. */
  trackingEnabled: boolean;
  /** What is tracked in messages that do not say, once tracking is enabled. */
  trackOpens: boolean;
  trackClicks: boolean;
  /** The host of tracked links; null: none of its own. */
  trackingDomain: string | null;
  /** Its subdomains may send by it (relaxed alignment). */
  allowSubdomains: boolean;
  /** Raised by each change: a change made from an older revision is not kept. */
  revision: number;
}

/** The host of its tracked links, once its record is seen in the DNS; null: none of its own. */
export function seenTrackingName({
  trackingDomain: name,
  records,
}: Pick<SenderDomain, "trackingDomain" | "records">): string | null {
  const seen = records.some(
    (record) => record.purpose === "tracking" && record.name === name && record.status === "ok",
  );
  return seen ? name : null;
}
