// The calls about blocklists: what they say of addresses, and the zones that the operator added or removed.
import type { NewEvent } from "../../model/event.ts";
import type { AddressBlacklists, Listing, ZoneChange } from "../../model/listing.ts";

export interface ListingStore {
  /** By address and zone. */
  listings(): Promise<Listing[]>;
  /** In one transaction. */
  saveListings(listings: Listing[], events: NewEvent[]): Promise<void>;
  removeListings(listings: Pick<Listing, "address" | "zone">[]): Promise<void>;
  /** What addresses of pools show; one that is in no pool is left out. */
  showBlacklists(addresses: AddressBlacklists[], at: number): Promise<void>;
  /** By zone. */
  zoneChanges(): Promise<ZoneChange[]>;
  putZoneChange(change: ZoneChange): Promise<void>;
  removeZoneChange(zone: string): Promise<void>;
}
