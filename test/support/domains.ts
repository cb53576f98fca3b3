// What a sender domain has that nobody chose.
import type { DnsRecord } from "../../src/model/dns-record.ts";
import type { SenderDomain } from "../../src/model/domain.ts";

export const asAdded: Pick<
  SenderDomain,
  | "returnPathBefore"
  | "trackingEnabled"
  | "trackOpens"
  | "trackClicks"
  | "trackingDomain"
  | "allowSubdomains"
  | "revision"
> = {
  returnPathBefore: null,
  trackingEnabled: false,
  trackOpens: false,
  trackClicks: false,
  trackingDomain: null,
  allowSubdomains: true,
  revision: 0,
};

/** The record of a tracking name, as it is once the DNS has it. */
export const seenTracking = (name: string): DnsRecord => ({
  purpose: "tracking",
  type: "CNAME",
  name,
  value: "mail.svc.test",
  required: false,
  status: "ok",
  found: ["mail.svc.test"],
  issue: null,
});
