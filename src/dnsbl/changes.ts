// An address that came on a blocklist or off it, and the event that each account gets whose pools it is in.
import { isoTime } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import type { NewEvent } from "../model/event.ts";
import type { Listing } from "../model/listing.ts";
import type { Watched } from "./watched.ts";
import type { Zone } from "./zones.ts";

export interface ListingChange {
  zone: Zone;
  watched: Watched;
  /** As it is now. */
  listing: Listing;
  /** When the address was found on the list first. */
  listedAt: number;
  /** When it was no longer found there; null: it is listed. */
  delistedAt: number | null;
}

export function eventsOf(
  recorder: Pick<Recorder, "ofAddress">,
  { zone, watched, listing, listedAt, delistedAt }: ListingChange,
  now: number,
): NewEvent[] {
  const accounts = Map.groupBy(watched.pools, ({ accountKey }) => accountKey);
  return [...accounts].map(([accountKey, pools]) => {
    const common = {
      ip_address: listing.address,
      blacklist_name: zone.name,
      blacklist_zone: zone.zone,
      affected_pools: pools.map(({ name }) => name).toSorted(),
    };
    return delistedAt === null
      ? recorder.ofAddress("ip.blacklisted", accountKey, now, {
          ...common,
          listing_reason: listing.reason ?? "",
          detected_at: isoTime(listedAt),
          return_code: listing.codes.join(", "),
          removal_url: zone.removalUrl,
        })
      : recorder.ofAddress("ip.delisted", accountKey, now, {
          ...common,
          listed_at: isoTime(listedAt),
          delisted_at: isoTime(delistedAt),
          duration_seconds: Math.max(0, Math.round((delistedAt - listedAt) / 1000)),
        });
  });
}
