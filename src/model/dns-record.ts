// A DNS record that a sender domain should publish, and what the last check found of it. Which records those are:
// domains/records.ts; when one is right: domains/verify-records.ts.

export const recordPurposes = ["dkim", "spf", "return_path", "dmarc", "tracking"] as const;
export type RecordPurpose = (typeof recordPurposes)[number];

export const recordTypes = ["TXT", "MX", "CNAME"] as const;
export type RecordType = (typeof recordTypes)[number];

/** `unknown`: the DNS gave no answer. */
export const recordStatuses = ["unchecked", "ok", "missing", "mismatch", "unknown"] as const;
export type RecordStatus = (typeof recordStatuses)[number];

export interface DnsRecord {
  purpose: RecordPurpose;
  type: RecordType;
  name: string;
  value: string;
  required: boolean;
  status: RecordStatus;
  found: string[];
  issue: string | null;
}
