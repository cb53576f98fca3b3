// Where lanes go, as it was last found out. A lane whose destination is known never waits for a name server: what was
// known up to a minute ago serves while it is asked for again. Lanes that are not known wait their turn, the accounts
// sharing the places (fairness.ts), so that one account's silent name servers delay nobody else's mail.
import type { Clock } from "../clock.ts";
import { createFairMap } from "../fairness/fair-map.ts";
import { createFairSlots } from "../fairness.ts";
import type { Owner } from "../fairness.ts";
import type { Log } from "../log.ts";
import type { Outcome, Unsent } from "../mail/outcome.ts";
import type { Job, Unsigned } from "../model/queued-recipient.ts";
import type { Family, Source } from "../pools/sources.ts";
import { readLane } from "./lane.ts";

/** Where a lane's jobs go: a group to pace, and how to try one job there. */
export interface Destination {
  group: string;
  /** Whose mail it is: the account, or for what no account sends a name of its own. */
  account: Owner;
  /** Its mail waits in one line with that of other lanes: those of a pool at a group. */
  line: string;
  /** What was decided here without a receiver, as "the DNS could not be asked": it is not kept while it is asked for again. */
  onlyFresh?: true;
  /** The addresses that it may leave from now, the same list until that changes; empty: none, it waits. */
  sources(): readonly Source[];
  /** The usable addresses of the pool that are of this family, whether or not the first hosts have it. */
  sourcesOf(family: Family): readonly Source[];
  /** Begins what the first attempt needs while the message is on its way to the disk. */
  prepare(message: Unsigned, headerSection: Buffer): void;
  /**
   * Never rejects for what a network or a receiver does. `mayFinish` is false once the lease is lost. `sourceOf` moves the
   * attempt to a slot at an address of the other family; null: there is none.
   */
  attempt(
    job: Job,
    mayFinish: () => boolean,
    source: Source,
    sourceOf: (family: Family) => Source | null,
  ): Promise<Outcome | Unsent>;
}

export interface Routing {
  /** The destination as it is known; null: it must be asked for. */
  known(lane: string): Destination | null;
  /** Asks, once at a time for each lane; null after a fault of this program. */
  ask(lane: string): Promise<Destination | null>;
  /** Nothing that was found out, or is being asked for, counts any more. */
  forget(): void;
}

export interface RoutingDeps {
  /** Routes a lane as of now. Never rejects for what a network does. */
  destinationOf(lane: string): Promise<Destination>;
  /** Destinations that are remembered. */
  most?: number;
  clock: Clock;
  log: Log;
}

/** A lane's destination is asked for again after this; the resolver's cache knows the TTL. */
const keptMs = 5_000;
const staleMs = 60_000;
const destinationsMost = 50_000;
/**
 * Lanes that are asked for at once. With the patience this passes on fewer lanes a second than the resolver begins
 * questions, so that an account's lanes wait here, where the newest does not wait for the others, and not there as well.
 */
const slots = 250;
/** A name server that has the answer says so sooner. */
const patienceMs = 400;
/** Lanes that are asked for longer than that, on top: each costs a little memory. */
const lingering = 10_000;

export function createRouting({ destinationOf, most = destinationsMost, clock, log }: RoutingDeps): Routing {
  const places = createFairSlots({ slots, patienceMs, lingering, clock });
  const destinations = createFairMap<{ to: Destination; until: number }>(most);
  const asking = new Map<string, Promise<Destination | null>>();
  let epoch = 0;

  const find = async (lane: string): Promise<Destination | null> => {
    const begun = epoch;
    try {
      const to = await destinationOf(lane);
      if (begun === epoch) destinations.set(ownerOf(lane), lane, { to, until: clock.monotonic() + keptMs });
      return to;
    } catch (error) {
      log.error({ lane, err: error }, "routing failed by a fault of this program; it is retried");
      return null;
    }
  };

  const ask = (lane: string): Promise<Destination | null> => {
    const already = asking.get(lane);
    if (already) return already;
    const { promise, resolve } = Promise.withResolvers<Destination | null>();
    asking.set(lane, promise);
    const begin = (leave: () => void): void =>
      void find(lane).then((to) => {
        if (asking.get(lane) === promise) asking.delete(lane);
        leave();
        resolve(to);
      });
    places.enter(ownerOf(lane), begin, { again: destinations.get(lane)?.to.onlyFresh === true });
    return promise;
  };

  return {
    ask,
    known(lane) {
      const entry = destinations.get(lane);
      if (!entry) return null;
      const age = clock.monotonic() - entry.until;
      if (age < 0) return entry.to;
      if (age >= staleMs || entry.to.onlyFresh) return null;
      if (!asking.has(lane)) void ask(lane);
      return entry.to;
    },
    forget() {
      epoch += 1;
      destinations.clear();
      asking.clear();
    },
  };
}

/** The account; lanes of none share one place. */
function ownerOf(lane: string): Owner {
  return readLane(lane)?.accountKey ?? "";
}
