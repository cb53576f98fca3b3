// What a sender domain has that nobody chose.
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
