// One zone in one run: it is asked about the addresses that are due, one question after the other, the longest unasked
// first. It is left for the rest of the run once it is silent, or the run is over; the next run goes on there.
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Listing } from "../model/listing.ts";
import type { ListingChange } from "./changes.ts";
import { lookUp, reasonOf, type ZoneHealth } from "./look.ts";
import { afterLook } from "./state.ts";
import type { Watched } from "./watched.ts";
import type { Zone } from "./zones.ts";

/** Silent answers in a row after which a zone is left. */
const silentMost = 3;

/** Whether an address may be asked about. `health`: null before the first test. */
export function takes(zone: Zone, health: ZoneHealth | null, address: string): boolean {
  if (!address.includes(":")) return true;
  return health?.status === "ok" ? health.ipv6 : zone.ipv6 === true;
}

/** What was asked, and what changed by it. */
export interface Walked {
  listings: Listing[];
  changes: ListingChange[];
}

export async function walkZone(
  deps: { resolver: Pick<Resolver, "a" | "txt">; clock: Clock; isOver: () => boolean },
  zone: Zone,
  due: readonly { watched: Watched; before: Listing | null }[],
): Promise<Walked> {
  const walked: Walked = { listings: [], changes: [] };
  let silent = 0;
  for (const { watched, before } of due.toSorted((a, b) => lookedAt(a.before) - lookedAt(b.before))) {
    if (deps.isOver() || silent >= silentMost) break;
    const { address } = watched;
    const look = await lookUp(deps.resolver, zone, address);
    silent = look.answer === "unknown" && look.silent ? silent + 1 : 0;
    const { listing, change } = afterLook(before, { address, zone: zone.zone }, look, deps.clock.now());
    if (change === "listed") listing.reason = await reasonOf(deps.resolver, zone, address, listing.codes);
    walked.listings.push(listing);
    if (change !== null)
      walked.changes.push({
        zone,
        watched,
        listing,
        listedAt: listing.listedAt ?? before?.listedAt ?? listing.lookedAt,
        delistedAt: change === "delisted" ? (before?.changedAt ?? listing.lookedAt) : null,
      });
  }
  return walked;
}

const lookedAt = (listing: Listing | null): number => listing?.lookedAt ?? 0;
