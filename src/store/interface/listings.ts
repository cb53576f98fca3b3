// The calls about blocklists: what they say of addresses, and the zones that the operator added or removed.
import type { NewEvent } from "../../model/event.ts";
import type { AddressBlacklists, Listing, ZoneChange } from "../../model/listing.ts";

export interface ListingStore {
  /** By address and zone. */
  listings(): Promise<Listing[]>;
  /** In one transaction. `gone`: no longer watched. `addresses`: those of pools whose zones changed; one that is in no pool is left out. */
  saveListings(change: {
    listings: Listing[];
    gone: Pick<Listing, "address" | "zone">[];
    addresses: AddressBlacklists[];
    events: NewEvent[];
    at: number;
  }): Promise<void>;
  /** By zone. */
  zoneChanges(): Promise<ZoneChange[]>;
  putZoneChange(change: ZoneChange): Promise<void>;
  removeZoneChange(zone: string): Promise<void>;
}
