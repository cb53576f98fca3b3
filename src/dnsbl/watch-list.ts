// What is watched: the zones, where receivers see our mail come from, and at which of these addresses. Which these are is
// watched.ts's; they are read at the begin of each run, the zones at the start and after each write of the operator's.
import { minuteMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Pool } from "../model/ip-pool.ts";
import type { NamedZone } from "../model/listing.ts";
import type { Store } from "../store/store.ts";
import {
  createNames,
  namesOf,
  sourcesOf,
  watchedOf,
  type Source,
  type SystemChoice,
  type Watched,
} from "./watched.ts";
import { zonesOf, type Zone } from "./zones.ts";

export interface WatchListDeps {
  store: Pick<Store, "zoneChanges">;
  pools(): readonly Pool[];
  resolver: Pick<Resolver, "a" | "aaaa">;
  config: { intervalMs: number; zones: readonly NamedZone[] };
  clock: Clock;
}

export interface WatchList {
  readZones(): Promise<void>;
  readAddresses(choice: SystemChoice, isOver: () => boolean): Promise<void>;
  zones(): readonly Zone[];
  sources(): Source[];
  addresses(): readonly Watched[];
  /** The address is `wanted`, or what receivers see of an address of a pool that is. */
  isAt(wanted: string, address: string): boolean;
}

export function createWatchList({ store, pools, resolver, config, clock }: WatchListDeps): WatchList {
  const names = createNames(resolver, clock, Math.max(config.intervalMs, minuteMs));
  let zones: Zone[] = [];
  let sources: Source[] = [];
  let watched: Watched[] = [];
  return {
    async readZones() {
      zones = zonesOf(config.zones, await store.zoneChanges());
    },
    async readAddresses(choice, isOver) {
      await names.refresh(namesOf(pools(), choice), isOver);
      sources = sourcesOf(pools(), choice, names);
      watched = watchedOf(sources);
    },
    zones: () => zones,
    sources: () => sources,
    addresses: () => watched,
    isAt: (wanted, address) =>
      wanted === address ||
      sources.some((source) => source.of?.address === wanted && source.publicAddresses?.includes(address)),
  };
}
