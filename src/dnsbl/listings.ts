// What is known of each address at each zone, in memory as it is in the store. A change is written with its events in one
// transaction; many rows are written in pieces, so that no write holds up others.
import type { Clock } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import type { Listing } from "../model/listing.ts";
import type { Store } from "../store/store.ts";
import { eventsOf, type ListingChange } from "./changes.ts";
import type { Walked } from "./walk.ts";

export interface Listings {
  read(): Promise<void>;
  /** null: it was not looked up yet. */
  at(address: string, zone: string): Listing | null;
  /** Of all addresses and zones. */
  listed(): Listing[];
  save(walked: Walked): Promise<void>;
  /** Forgets the rows of all other addresses and zones. */
  keep(addresses: ReadonlySet<string>, zones: ReadonlySet<string>): Promise<void>;
}

export interface ListingsDeps {
  store: Pick<Store, "listings" | "saveListings" | "removeListings">;
  recorder: Pick<Recorder, "ofAddress">;
  clock: Clock;
  /** Called once they are written. */
  onChanges(changes: readonly ListingChange[]): void;
}

/** Of a write: a few milliseconds of the writer's time. */
export const rowsAtOnce = 200;

export function createListings({ store, recorder, clock, onChanges }: ListingsDeps): Listings {
  /** By zone, then by address. */
  const rows = new Map<string, Map<string, Listing>>();

  const at = (address: string, zone: string): Listing | null => rows.get(zone)?.get(address) ?? null;
  const put = (row: Listing): void => {
    const ofZone = rows.get(row.zone) ?? new Map<string, Listing>();
    rows.set(row.zone, ofZone.set(row.address, row));
  };
  const all = (): Listing[] => [...rows.values()].flatMap((ofZone) => [...ofZone.values()]);

  /** What they said is asked for again, and not before an interval has passed. */
  const noteUnwritten = (listings: readonly Listing[]): void => {
    for (const { address, zone, lookedAt } of listings)
      put({ ...(at(address, zone) ?? unasked(address, zone)), lookedAt });
  };

  return {
    async read() {
      for (const row of await store.listings()) put(row);
    },
    at,
    listed: () => all().filter(({ listedAt }) => listedAt !== null),
    async save({ listings, changes }) {
      const changeOf = new Map(changes.map((change) => [change.listing, change]));
      for (let from = 0; from < listings.length; from += rowsAtOnce) {
        const some = listings.slice(from, from + rowsAtOnce);
        const changed = some.flatMap((listing) => changeOf.get(listing) ?? []);
        const events = changed.flatMap((change) => eventsOf(recorder, change, clock.now()));
        try {
          await store.saveListings(some, events);
        } catch (error) {
          noteUnwritten(listings.slice(from));
          throw error;
        }
        for (const row of some) put(row);
        if (changed.length > 0) onChanges(changed);
      }
    },
    async keep(addresses, zones) {
      const gone = all().filter(({ address, zone }) => !addresses.has(address) || !zones.has(zone));
      for (let from = 0; from < gone.length; from += rowsAtOnce)
        await store.removeListings(gone.slice(from, from + rowsAtOnce));
      for (const { address, zone } of gone) rows.get(zone)?.delete(address);
    },
  };
}

const unasked = (address: string, zone: string): Listing => ({
  address,
  zone,
  answer: "unknown",
  detail: null,
  lookedAt: 0,
  codes: [],
  reason: null,
  listedAt: null,
  changedAt: null,
});
