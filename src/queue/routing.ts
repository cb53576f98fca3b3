// Where scheduled queues go, as it was last found out. New mail and a backlog of a known destination never wait for a name
// server: what was known up to a minute ago serves while it is asked for again. A queue that comes due, as a retry does, is
// asked for where that was longer ago than a moment, so that it never goes by an MX list whose TTL has ended. Scheduled queues
// that are asked for wait their turn, the accounts sharing the places (fairness.ts), so that one account's silent name servers
// delay no other account's mail.
import type { Clock } from "../clock.ts";
import { createFairMap } from "../fairness/fair-map.ts";
import { createFairSlots } from "../fairness.ts";
import type { Owner } from "../fairness.ts";
import type { Log } from "../log.ts";
import type { Outcome, Unsent } from "../mail/outcome.ts";
import type { Job, Unsigned } from "../model/queued-recipient.ts";
import type { Family, Source } from "../pools/sources.ts";
import { readQueueName } from "./queue-name.ts";

/** Where a scheduled queue's jobs go: a group with its limits, and how to try one job there. */
export interface Destination {
  /** Whose limits hold (shaping.ts): an MX group, or `domain/group`. */
  group: string;
  /** Whose mail it is: the account, or for what no account sends a name of its own. */
  account: Owner;
  /** The name of its ready queue, which scheduled queues of one pool at one group share. */
  readyQueue: string;
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
  /** The destination as it is known, up to a minute old; null: it must be asked for. */
  known(queueName: string): Destination | null;
  /** The destination as it was found out a moment ago; null: it must be asked for. */
  fresh(queueName: string): Destination | null;
  /** Asks, once at a time for each scheduled queue; null after a fault of this program. */
  ask(queueName: string): Promise<Destination | null>;
  /** Nothing that was found out, or is being asked for, counts any more. */
  forget(): void;
}

export interface RoutingDeps {
  /** Routes a scheduled queue as of now. Never rejects for what a network does. */
  destinationOf(queueName: string): Promise<Destination>;
  /** Destinations that are remembered. */
  most?: number;
  clock: Clock;
  log: Log;
}

/** A scheduled queue's destination is asked for again after this; the resolver's cache knows the TTL. */
const keptMs = 5_000;
const staleMs = 60_000;
const destinationsMost = 50_000;
/**
 * Scheduled queues that are asked for at once. With the patience this passes on fewer scheduled queues a second than the resolver begins
 * questions, so that an account's scheduled queues wait here, where the newest does not wait for the others, and not there as well.
 */
const slots = 250;
/** A name server that has the answer says so sooner. */
const patienceMs = 400;
/** Scheduled queues that are asked for longer than that, on top: each costs a little memory. */
const lingering = 10_000;

export function createRouting({ destinationOf, most = destinationsMost, clock, log }: RoutingDeps): Routing {
  const places = createFairSlots({ slots, patienceMs, lingering, clock });
  const destinations = createFairMap<{ to: Destination; until: number }>(most);
  const asking = new Map<string, Promise<Destination | null>>();
  let epoch = 0;

  const find = async (queueName: string): Promise<Destination | null> => {
    const begun = epoch;
    try {
      const to = await destinationOf(queueName);
      if (begun === epoch)
        destinations.set(ownerOf(queueName), queueName, { to, until: clock.monotonic() + keptMs });
      return to;
    } catch (error) {
      log.error({ queueName, err: error }, "routing failed by a fault of this program; it is retried");
      return null;
    }
  };

  const ask = (queueName: string): Promise<Destination | null> => {
    const already = asking.get(queueName);
    if (already) return already;
    const { promise, resolve } = Promise.withResolvers<Destination | null>();
    asking.set(queueName, promise);
    const begin = (leave: () => void): void =>
      void find(queueName).then((to) => {
        if (asking.get(queueName) === promise) asking.delete(queueName);
        leave();
        resolve(to);
      });
    places.enter(ownerOf(queueName), begin, { again: destinations.get(queueName)?.to.onlyFresh === true });
    return promise;
  };

  return {
    ask,
    fresh(queueName) {
      const entry = destinations.get(queueName);
      return entry && clock.monotonic() < entry.until ? entry.to : null;
    },
    known(queueName) {
      const entry = destinations.get(queueName);
      if (!entry) return null;
      const age = clock.monotonic() - entry.until;
      if (age < 0) return entry.to;
      if (age >= staleMs || entry.to.onlyFresh) return null;
      if (!asking.has(queueName)) void ask(queueName);
      return entry.to;
    },
    forget() {
      epoch += 1;
      destinations.clear();
      asking.clear();
    },
  };
}

/** The account; scheduled queues of none share one place. */
function ownerOf(queueName: string): Owner {
  return readQueueName(queueName)?.accountKey ?? "";
}
