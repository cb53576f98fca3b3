// A run over the watch list: asks each zone what is due (walk.ts), saves what came of it, and shows it at the pools. Runs
// follow one another, and one ends after some seconds, so that a zone that is slow delays no other for longer.
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Listing } from "../model/listing.ts";
import type { Listings } from "./listings.ts";
import type { Source, SystemChoice } from "./watched.ts";
import { takes, walkZone, type Walked } from "./walk.ts";
import type { WatchList } from "./watch-list.ts";
import type { ZoneTests } from "./zone-health.ts";
import type { Zone } from "./zones.ts";

/** Whether an address is to be asked about, by what is known of it at the zone. */
export type Due = (row: Listing | null, address: string) => boolean;

export interface RunDeps {
  list: WatchList;
  listings: Listings;
  tests: ZoneTests;
  resolver: Pick<Resolver, "a" | "txt">;
  clock: Clock;
  /** null: nothing is watched. */
  system: SystemChoice | null;
  /** Called once a run has saved what it found. */
  show(sources: Source[], zones: readonly Zone[]): Promise<void>;
}

export interface Runs {
  /** `isDue` is made when the run's turn has come. */
  run(isDue: () => Due): Promise<void>;
  /** What is being saved is saved to its end. */
  stop(): Promise<void>;
}

const runMs = 20_000;
const nothing: Walked = { listings: [], changes: [] };

export function createRuns(deps: RunDeps): Runs {
  const { list, listings, tests, resolver, clock, system } = deps;
  let stopping = false;
  let running: Promise<void> = Promise.resolve();
  let saving: Promise<void> = Promise.resolve();

  const ask = async (zone: Zone, isDue: Due, isOver: () => boolean): Promise<Walked> => {
    const due = list
      .addresses()
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
    if (list.sources().some(({ publicAddresses }) => publicAddresses === null)) return;
    const addresses = new Set(list.addresses().map(({ address }) => address));
    await listings.keep(addresses, new Set(list.zones().map(({ zone }) => zone)));
  };

  const save = async (walks: readonly Walked[]): Promise<void> => {
    for (const walked of walks) await listings.save(walked);
    await forget();
    await deps.show(list.sources(), list.zones());
  };

  const runOnce = async (isDue: Due): Promise<void> => {
    if (system === null || stopping) return;
    const until = clock.monotonic() + runMs;
    const isOver = (): boolean => stopping || clock.monotonic() >= until;
    await list.readAddresses(system, isOver);
    const walks = await Promise.all(list.zones().map((zone) => ask(zone, isDue, isOver)));
    if (stopping) return;
    saving = save(walks);
    await saving;
  };

  return {
    /** One after the other: a question that one asks is not due for the next. */
    run(isDue) {
      running = running.catch(() => undefined).then(() => runOnce(isDue()));
      return running;
    },
    async stop() {
      stopping = true;
      await saving.catch(() => undefined); // thrown to the run
    },
  };
}
