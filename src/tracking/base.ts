// The name that tracked links of a domain lead to: its tracking name once that is seen in the DNS, else our public
// address. The port is that of the public address: the same listener answers for both.
import { seenTrackingName, type SenderDomain } from "../model/domain.ts";

/** `https://name`, without a slash behind. `publicUrl`: config.publicUrl. */
export function trackingBase(
  domain: Pick<SenderDomain, "trackingDomain" | "records"> | null,
  publicUrl: string,
): string {
  const url = new URL(publicUrl);
  const name = domain && seenTrackingName(domain);
  return name === null ? url.origin : `https://${name}${url.port === "" ? "" : `:${url.port}`}`;
}
