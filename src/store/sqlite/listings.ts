// What blocklists say of addresses: a row an address and zone, written in one transaction with the events that it raises
// and with what the addresses of pools show of it. The operator's zones are rows of their own.
import type { Database, Statement } from "better-sqlite3";
import type { NewEvent } from "../../model/event.ts";
import type { Listing, ZoneChange } from "../../model/listing.ts";
import { everyone, nothing } from "../changes.ts";
import { packEvent } from "../event-packing.ts";
import type { ListingStore } from "../interface/listings.ts";
import { storableOrNull, withStorableText } from "../storable-text.ts";
import { none, noun, type Writing } from "./noun.ts";

type SavedListings = Parameters<ListingStore["saveListings"]>[0];
type ListingRow = Omit<Listing, "codes"> & { codes: string };
type ZoneRow = Omit<ZoneChange, "codes" | "watched"> & { codes: string | null; watched: number };

function createListingWrites(db: Database, recordEvent: (event: NewEvent) => void) {
  const put = db.prepare(
    `INSERT OR REPLACE INTO dnsbl_listings (address, zone, answer, detail, looked_at, codes, reason, listed_at, changed_at)
     VALUES (@address, @zone, @answer, @detail, @lookedAt, @codes, @reason, @listedAt, @changedAt)`,
  );
  const remove = db.prepare("DELETE FROM dnsbl_listings WHERE address = ? AND zone = ?");
  const show = db.prepare("UPDATE ip_addresses SET blacklists = ?, updated_at = ? WHERE address = ?");
  const putZone = db.prepare(
    `INSERT OR REPLACE INTO dnsbl_zones (zone, watched, name, codes, removal_url)
     VALUES (@zone, @watched, @name, @codes, @removalUrl)`,
  );
  const removeZone = db.prepare("DELETE FROM dnsbl_zones WHERE zone = ?");

  return {
    saveListings({ listings, gone, addresses, events, at }: SavedListings): void {
      for (const listing of listings) put.run({ ...listing, codes: JSON.stringify(listing.codes) });
      for (const { address, zone } of gone) remove.run(address, zone);
      for (const { address, zones } of addresses) show.run(JSON.stringify(zones), at, address);
      for (const event of events) recordEvent(event);
    },
    putZoneChange({ watched, codes, ...change }: ZoneChange): void {
      putZone.run({
        ...change,
        watched: Number(watched),
        codes: codes === null ? null : JSON.stringify(codes),
      });
    },
    removeZoneChange: ({ zone }: { zone: string }): void => void removeZone.run(zone),
  };
}

function createListingLookups(db: Database) {
  const listings: Statement<[], ListingRow> = db.prepare(
    `SELECT address, zone, answer, detail, looked_at AS lookedAt, codes, reason, listed_at AS listedAt,
       changed_at AS changedAt FROM dnsbl_listings ORDER BY address, zone`,
  );
  const zones: Statement<[], ZoneRow> = db.prepare(
    "SELECT zone, watched, name, codes, removal_url AS removalUrl FROM dnsbl_zones ORDER BY zone",
  );
  return {
    listings: (): Listing[] =>
      listings.all().map((row) => ({ ...row, codes: JSON.parse(row.codes) as string[] })),
    zoneChanges: (): ZoneChange[] =>
      zones.all().map(({ watched, codes, ...row }) => ({
        ...row,
        watched: watched !== 0,
        codes: codes === null ? null : (JSON.parse(codes) as string[]),
      })),
  };
}

export const listings = noun({
  commands: (db: Database, { recordEvent }: Writing) => createListingWrites(db, recordEvent),
  touches: {
    saveListings(touch, { addresses, events }) {
      if (addresses.length > 0) touch(everyone, "ip_pools");
      for (const { accountKey, receivedAt } of events) touch(accountKey, "events", receivedAt);
    },
    putZoneChange: nothing, // their answers are composed on each request
    removeZoneChange: nothing,
  },
  lookups: createListingLookups,
  lists: none,
  calls: ({ write, lookups }): ListingStore => ({
    listings: async () => lookups.listings(),
    saveListings: ({ listings: rows, events, ...rest }) =>
      write.saveListings({
        ...rest,
        listings: rows.map((row) => ({
          ...row,
          detail: storableOrNull(row.detail),
          reason: storableOrNull(row.reason),
        })),
        events: events.map(packEvent),
      }),
    zoneChanges: async () => lookups.zoneChanges(),
    putZoneChange: (change) => write.putZoneChange(withStorableText(change)),
    removeZoneChange: (zone) => write.removeZoneChange({ zone }),
  }),
});

