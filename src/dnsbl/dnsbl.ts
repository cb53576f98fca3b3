// The DNSBL monitor: asks each zone about each address that receivers see our mail come from, once an interval at most,
// over restarts too. What an answer means is look.ts's, what it changes state.ts's, which addresses are asked watched.ts's.
// What is known is listings.ts's, what pools show of it shown.ts's. A run ends after some seconds, so that a zone that is slow delays no other for longer.
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
import { takes, walkZone, type Walked } from "./walk.ts";
import {
  createNames,
  namesOf,
  sourcesOf,
  watchedOf,
  type Source,
  type SystemChoice,
  type Watched,
} from "./watched.ts";
import { createZoneTests, type TestedZone } from "./zone-health.ts";
import { zonesOf, type Zone } from "./zones.ts";

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
const runMs = 20_000;
const nothing: Walked = { listings: [], changes: [] };

export function createDnsbl(deps: DnsblDeps): Dnsbl & HasJobs {
  const { store, resolver, clock, log, config, system } = deps;
  const listeners: ((changes: readonly ListingChange[]) => void)[] = [];
  const names = createNames(resolver, clock, Math.max(config.intervalMs, minuteMs));
  const tests = createZoneTests({ resolver, intervalMs: config.intervalMs, clock, log });
  const listings = createListings({
    ...deps,
    onChanges(changes) {
      for (const listener of listeners) listener(changes);
    },
  });
  const isListed = (listing: Listing | null): boolean => isListedNow(listing, clock.now(), config.intervalMs);
  const showing = { ...deps, listings, isListed };
  let zones: Zone[] = [];
  let sources: Source[] = [];
  let watched: Watched[] = [];
  let stopping = false;
  let running: Promise<void> = Promise.resolve();
  let saving: Promise<void> = Promise.resolve();

  const stateOf = (zone: Zone): ZoneState => ({ zone, tested: tests.last(zone) });

  const readZones = async (): Promise<void> => {
    zones = zonesOf(config.zones, await store.zoneChanges());
    tests.keep(zones);
  };

  const readWatched = async (choice: SystemChoice, isOver: () => boolean): Promise<void> => {
    await names.refresh(namesOf(deps.pools(), choice), isOver);
    sources = sourcesOf(deps.pools(), choice, names);
    watched = watchedOf(sources);
  };

  const ask = async (zone: Zone, isDue: Due, isOver: () => boolean): Promise<Walked> => {
    const due = watched
      .filter(({ address, usable }) => usable && (zone.ipv6 !== false || takes(zone, null, address)))
      .map((one) => ({ watched: one, before: listings.at(one.address, zone.zone) }))
      .filter(({ watched: { address }, before }) => isDue(before, address));
    const health = due.length === 0 ? null : await tests.health(zone);
    if (health?.status !== "ok") return nothing;
    const taken = due.filter(({ watched: { address } }) => takes(zone, health, address));
    const walked = await walkZone({ resolver, clock, isOver }, zone, taken);
    if (walked.changes.every(({ delistedAt }) => delistedAt !== null)) return walked;
    // A blocklist that closes may list every address from one hour to the next.
    return (await tests.test(zone)).status === "ok" ? walked : nothing;
  };

  /** What is no longer watched; nothing while it is not known what is. */
  const forget = async (): Promise<void> => {
    if (sources.some(({ publicAddresses }) => publicAddresses === null)) return;
    const addresses = new Set(watched.map(({ address }) => address));
    await listings.keep(addresses, new Set(zones.map(({ zone }) => zone)));
  };

  const save = async (walks: readonly Walked[]): Promise<void> => {
    for (const walked of walks) await listings.save(walked);
    await forget();
    await showListed(showing, sources, zones);
  };

  const runOnce = async (isDue: Due): Promise<void> => {
    if (system === null || stopping) return;
    const until = clock.monotonic() + runMs;
    const isOver = (): boolean => stopping || clock.monotonic() >= until;
    await readWatched(system, isOver);
    const walks = await Promise.all(zones.map((zone) => ask(zone, isDue, isOver)));
    if (stopping) return;
    saving = save(walks);
    await saving;
  };

  /** One after the other: a question that one asks is not due for the next. */
  const run = (isDue: () => Due): Promise<void> => {
    running = running.catch(() => undefined).then(() => runOnce(isDue()));
    return running;
  };

  const olderThan = (ms: number): Due => {
    const now = clock.now();
    // A clock that was set back must not silence the monitor.
    return (row) => row === null || now - row.lookedAt >= ms || row.lookedAt > now;
  };

  const isAt = (wanted: string, address: string): boolean =>
    wanted === address ||
    sources.some((source) => source.of?.address === wanted && source.publicAddresses?.includes(address));

  const listingsOf = (wanted: string | null): WatchedListings[] =>
    watched
      .filter(({ address }) => wanted === null || isAt(wanted, address))
      .map(({ address, pools }) => ({
        address,
        pools: pools.map(({ name }) => name).toSorted(),
        zones: zones
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
    async stop() {
      stopping = true;
      await saving.catch(() => undefined); // thrown to the run
    },
    listings: () => listingsOf(null),
    summary: () => ({ addresses: watched.length, listed: listings.listed().filter(isListed) }),
    zones: () => zones.map(stateOf),
    async check(wanted) {
      await run(() => {
        const isOld = olderThan(Math.min(config.intervalMs, checkAgainMs));
        return (row, address) => isOld(row, address) && (wanted === null || isAt(wanted, address));
      });
      return listingsOf(wanted);
    },
    async test(name) {
      const zone = zones.find((one) => one.zone === name);
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
        run: () => run(() => olderThan(config.intervalMs)),
      },
    ],
  };
}

/** Whether an address is to be asked about, by what is known of it at the zone. */
type Due = (row: Listing | null, address: string) => boolean;
