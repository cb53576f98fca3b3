// The DNSBL monitor: asks each zone about each address that receivers see our mail come from, once an interval at most,
// over restarts too. What an answer means is look.ts's, what it changes state.ts's, which addresses are asked watched.ts's,
// kept in watch-list.ts. How they are asked is runs.ts's, what is known listings.ts's, what pools show of it shown.ts's.
import { minuteMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { Pool } from "../model/ip-pool.ts";
import type { Listing, NamedZone } from "../model/listing.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import type { ListingChange } from "./changes.ts";
import { createListings } from "./listings.ts";
import { showListed } from "./shown.ts";
import { isListedNow } from "./state.ts";
import { createRuns, type Due } from "./runs.ts";
import { takes } from "./walk.ts";
import { createWatchList } from "./watch-list.ts";
import type { SystemChoice } from "./watched.ts";
import { createZoneTests, type TestedZone } from "./zone-health.ts";
import type { Zone } from "./zones.ts";

export interface ZoneState {
  zone: Zone;
  /** null: not tested since the start. */
  tested: TestedZone | null;
}

/** What is known of a watched address at the zones that take its family; `listing`: null before the first look-up. */
export interface WatchedListings {
  address: string;
  pools: string[];
  zones: (ZoneState & {
    listing: Listing | null;
    /** It is listed, and its zone was asked lately. */
    listed: boolean;
  })[];
}

export interface Dnsbl extends Service {
  listings(): WatchedListings[];
  /** How many addresses are watched, and the listings of them. */
  summary(): { addresses: number; listed: Listing[] };
  zones(): ZoneState[];
  /** Asks now what was not asked within the last minute: of all addresses, or of one, as receivers see it or as it is in a pool. Answers what is known of them then. */
  check(address: string | null): Promise<WatchedListings[]>;
  /** The zone's state after a test; null: it is not watched. */
  test(zone: string): Promise<ZoneState | null>;
  /** Call after each write of the operator's zones. */
  zonesChanged(): Promise<void>;
  onChanges(listener: (changes: readonly ListingChange[]) => void): void;
}

export interface DnsblDeps {
  store: Pick<Store, "listings" | "saveListings" | "removeListings" | "showBlacklists" | "zoneChanges">;
  /** The pools of all accounts, as they are in memory. */
  pools(): readonly Pool[];
  /** Without a cache: a question is asked once an interval, and a check has to ask. */
  resolver: Pick<Resolver, "a" | "aaaa" | "txt">;
  recorder: Pick<Recorder, "ofAddress">;
  config: { intervalMs: number; zones: readonly NamedZone[] };
  /** null: nothing is watched, since receivers see another host's addresses. */
  system: SystemChoice | null;
  /** Called once addresses of the account's pools show other blocklists. */
  onShown(accountKey: number): Promise<void>;
  clock: Clock;
  log: Log;
  random: () => number;
}

/** A check asks nothing again that is not as old as this. */
const checkAgainMs = minuteMs;

export function createDnsbl(deps: DnsblDeps): Dnsbl & HasJobs {
  const { clock, config } = deps;
  const listeners: ((changes: readonly ListingChange[]) => void)[] = [];
  const list = createWatchList(deps);
  const tests = createZoneTests({ ...deps, intervalMs: config.intervalMs });
  const listings = createListings({
    ...deps,
    onChanges(changes) {
      for (const listener of listeners) listener(changes);
    },
  });
  const isListed = (listing: Listing | null): boolean => isListedNow(listing, clock.now(), config.intervalMs);
  const showing = { ...deps, listings, isListed };
  const runs = createRuns({
    ...deps,
    list,
    listings,
    tests,
    show: (sources, zones) => showListed(showing, sources, zones),
  });

  const stateOf = (zone: Zone): ZoneState => ({ zone, tested: tests.last(zone) });

  const readZones = async (): Promise<void> => {
    await list.readZones();
    tests.keep(list.zones());
  };

  const olderThan = (ms: number): Due => {
    const now = clock.now();
    // A clock that was set back must not silence the monitor.
    return (row) => row === null || now - row.lookedAt >= ms || row.lookedAt > now;
  };

  const listingsOf = (wanted: string | null): WatchedListings[] =>
    list
      .addresses()
      .filter(({ address }) => wanted === null || list.isAt(wanted, address))
      .map(({ address, pools }) => ({
        address,
        pools: pools.map(({ name }) => name).toSorted(),
        zones: list
          .zones()
          .filter((zone) => takes(zone, tests.last(zone)?.health ?? null, address))
          .map((zone) => {
            const listing = listings.at(address, zone.zone);
            return { ...stateOf(zone), listing, listed: isListed(listing) };
          }),
      }));

  const second = Math.floor(deps.random() * 60);
  return {
    name: "dnsbl",
    async start() {
      await listings.read();
      await readZones();
    },
    stop: runs.stop,
    listings: () => listingsOf(null),
    summary: () => ({ addresses: list.addresses().length, listed: listings.listed().filter(isListed) }),
    zones: () => list.zones().map(stateOf),
    async check(wanted) {
      await runs.run(() => {
        const isOld = olderThan(Math.min(config.intervalMs, checkAgainMs));
        return (row, address) => isOld(row, address) && (wanted === null || list.isAt(wanted, address));
      });
      return listingsOf(wanted);
    },
    async test(name) {
      const zone = list.zones().find((one) => one.zone === name);
      if (!zone) return null;
      await tests.test(zone);
      return stateOf(zone);
    },
    zonesChanged: readZones,
    onChanges: (listener) => void listeners.push(listener),
    // At a second of its own: installations do not ask the same zones all at once.
    jobs: [
      {
        name: "check-blacklists",
        cron: `${second} * * * * *`,
        run: () => runs.run(() => olderThan(config.intervalMs)),
      },
    ],
  };
}
