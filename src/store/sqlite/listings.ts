// What blocklists say of addresses: a row an address and zone, written in one transaction with the events that it raises.
// The addresses of pools show which zones list them. The operator's zones are rows of their own.
import type { Database, Statement } from "better-sqlite3";
import type { NewEvent } from "../../model/event.ts";
import type { AddressBlacklists, Listing, ZoneChange } from "../../model/listing.ts";
import { everyone, nothing } from "../changes.ts";
import { packEvent } from "../event-packing.ts";
import type { ListingStore } from "../interface/listings.ts";
import { none, noun, type Writing } from "./noun.ts";

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
    saveListings(arg: { listings: Listing[]; events: NewEvent[] }): void {
      for (const listing of arg.listings) put.run({ ...listing, codes: JSON.stringify(listing.codes) });
      for (const event of arg.events) recordEvent(event);
    },
    removeListings(arg: { listings: Pick<Listing, "address" | "zone">[] }): void {
      for (const { address, zone } of arg.listings) remove.run(address, zone);
    },
    showBlacklists({ addresses, at }: { addresses: AddressBlacklists[]; at: number }): void {
      for (const { address, zones } of addresses) show.run(JSON.stringify(zones), at, address);
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

const rowsOfPage = 1000;

function createListingLists(db: Database) {
  const listings: Statement<[string, string, number], ListingRow> = db.prepare(
    `SELECT address, zone, answer, detail, looked_at AS lookedAt, codes, reason, listed_at AS listedAt,
       changed_at AS changedAt FROM dnsbl_listings
     WHERE (address, zone) > (?, ?) ORDER BY address, zone LIMIT ?`,
  );
  const zones: Statement<[], ZoneRow> = db.prepare(
    "SELECT zone, watched, name, codes, removal_url AS removalUrl FROM dnsbl_zones WHERE zone > '' ORDER BY zone",
  );
  return {
    listingsAfter: ({ address, zone }: { address: string; zone: string }): Listing[] =>
      listings
        .all(address, zone, rowsOfPage)
        .map((row) => ({ ...row, codes: JSON.parse(row.codes) as string[] })),
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
    saveListings(touch, { events }) {
      for (const { accountKey, receivedAt } of events) touch(accountKey, "events", receivedAt);
    },
    removeListings: nothing, // answers about listings and zones are composed on each request
    showBlacklists: (touch) => touch(everyone, "ip_pools"),
    putZoneChange: nothing,
    removeZoneChange: nothing,
  },
  lookups: none,
  lists: createListingLists,
  calls: ({ write, lists }): ListingStore => ({
    async listings() {
      const all: Listing[] = [];
      for (let last = { address: "", zone: "" }; ;) {
        const page = await lists.listingsAfter({ address: last.address, zone: last.zone });
        all.push(...page);
        last = page.at(-1) ?? last;
        if (page.length < rowsOfPage) return all;
      }
    },
    saveListings: (rows, events) =>
      write.saveListings({
        listings: rows,
        events: events.map(packEvent),
      }),
    removeListings: (rows) =>
      write.removeListings({ listings: rows.map(({ address, zone }) => ({ address, zone })) }),
    showBlacklists: (addresses, at) => write.showBlacklists({ addresses, at }),
    zoneChanges: () => lists.zoneChanges({}),
    putZoneChange: (change) => write.putZoneChange(change),
    removeZoneChange: (zone) => write.removeZoneChange({ zone }),
  }),
});
