// Which blocklists the addresses of pools show: those that list an address now. It is kept with the address, so that the
// choice of an address to send from, and each reader of a pool, needs no look at the listings.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { AddressBlacklists, Listing } from "../model/listing.ts";
import type { Store } from "../store/store.ts";
import { rowsAtOnce, type Listings } from "./listings.ts";
import type { Source } from "./watched.ts";
import type { Zone } from "./zones.ts";

export interface Showing {
  store: Pick<Store, "showBlacklists">;
  listings: Pick<Listings, "at">;
  /** It is listed, and its zone was asked lately. */
  isListed(listing: Listing | null): boolean;
  /** Called once addresses of the account's pools show other blocklists. */
  onShown(accountKey: number): Promise<void>;
  clock: Clock;
  log: Log;
}

/** Brings what the addresses of pools show up to date. */
export async function showListed(
  deps: Showing,
  sources: readonly Source[],
  zones: readonly Zone[],
): Promise<void> {
  const { store, clock, log } = deps;
  const shown = shownOtherwise(deps, sources, zones);
  for (let from = 0; from < shown.length; from += rowsAtOnce) {
    const some = shown.slice(from, from + rowsAtOnce);
    for (const { address, ended } of some)
      if (ended.length > 0)
        log.warn(
          { address, zones: ended },
          "the blocklists could not be asked for days: what they listed counts no more, until they answer",
        );
    await store.showBlacklists(
      some.map(({ address, zones: now }) => ({ address, zones: now })),
      clock.now(),
    );
  }
  for (const accountKey of new Set(shown.map((one) => one.accountKey))) await deps.onShown(accountKey);
}

/** Addresses of pools that have to show other zones than they do. */
function shownOtherwise(
  { listings, isListed }: Showing,
  sources: readonly Source[],
  zones: readonly Zone[],
): (AddressBlacklists & { accountKey: number; ended: string[] })[] {
  return sources.flatMap(({ accountKey, of, publicAddresses }) => {
    if (of === null || publicAddresses === null) return [];
    const now = zones
      .map(({ zone }) => zone)
      .filter((zone) => publicAddresses.some((one) => isListed(listings.at(one, zone))));
    // Listed still, by a zone that is silent.
    const ended = of.blacklists.filter(
      (zone) =>
        !now.includes(zone) &&
        publicAddresses.some((one) => (listings.at(one, zone)?.listedAt ?? null) !== null),
    );
    return now.join() === of.blacklists.join()
      ? []
      : [{ accountKey, address: of.address, zones: now, ended }];
  });
}
