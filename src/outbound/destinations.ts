// From a scheduled queue to those who take its mail: the receivers' MX through delivery, the sandbox, or an
// answer that needs no receiver. Gives delivery what an attempt needs and knows no table itself.
import type { Clock } from "../clock.ts";
import type { Delivery, Route } from "../delivery/delivery.ts";
import type { Owner } from "../fairness.ts";
import type { Classification } from "../model/classification.ts";
import { createMac } from "../mail/mac.ts";
import { untried, type Outcome, type Unsent } from "../mail/outcome.ts";
import { returnPathLocal } from "../mail/return-path.ts";
import type { Job } from "../model/queued-recipient.ts";
import { isSimulated, sandboxOutcome } from "../sandbox/simulator.ts";
import { ContentGone, type Store } from "../store/store.ts";
import type { Pools } from "../pools/pools.ts";
import { systemSources, type Family, type Source } from "../pools/sources.ts";
import { readQueueName, sandboxQueue } from "../queue/queue-name.ts";
import type { Destination } from "../queue/routing.ts";
import { localGroup, type Shaping } from "../queue/shaping.ts";
import type { SignedMessages } from "./signed-message.ts";

export interface Destinations {
  destinationOf(queueName: string): Promise<Destination>;
  /** Mail of the scheduled queue waits, since its pool can use no address. */
  onNoSource(queueName: string): void;
  /** Mail of this job stays here: it is caught when it is delivered. */
  isCaught(job: Job): boolean;
  /** The bounce of a recipient that came onto the suppression list after acceptance. */
  suppressedSince(store: Pick<Store, "suppressed">): (job: Job) => Promise<Outcome | null>;
}

export interface DestinationsDeps {
  delivery: Pick<Delivery, "route" | "families" | "attempt">;
  shaping: Pick<Shaping, "groupFor">;
  pools: Pick<Pools, "sourcesOf" | "noteWaiting">;
  /** The addresses of a list that are not paused (queue/queue-pauses.ts). */
  unpaused(sources: readonly Source[]): readonly Source[];
  messages: SignedMessages;
  /** Signs VERP return paths, 32 bytes. */
  verpSecret: Uint8Array;
  clock: Clock;
}

export function createDestinations({
  delivery,
  shaping,
  pools,
  unpaused,
  messages,
  verpSecret,
  clock,
}: DestinationsDeps): Destinations {
  const verpMac = createMac(verpSecret);
  /** Of mail that leaves no address of ours. */
  const here = (group: string, account: Owner, decide: (job: Job) => Outcome): Destination => ({
    group,
    account,
    readyQueue: `${group} ${account}`,
    sources: () => systemSources.usable(null),
    sourcesOf: () => [],
    prepare: () => undefined,
    attempt: async (job) => decide(job),
  });
  const sandbox = here("sandbox", "sandbox", (job) => sandboxOutcome(job, clock.now()));

  const send = async (...given: Parameters<typeof trySend>): Promise<Outcome | Unsent> => {
    try {
      return await trySend(...given);
    } catch (error) {
      if (error instanceof ContentGone) return contentGone(given[0], clock.now());
      throw error;
    }
  };

  const trySend = async (
    job: Job,
    route: Extract<Route, { kind: "hosts" }>,
    mayFinish: () => boolean,
    source: Source,
    sourceOf: (family: Family) => Source | null,
  ): Promise<Outcome | Unsent> => {
    const { message } = job;
    const signed = await messages.of(job);
    if (signed === null) return domainGone(job, clock.now());
    return delivery.attempt({
      job,
      route,
      mailFrom: `${returnPathLocal(verpMac, message.key, job.key)}@${message.returnPathDomain}`,
      ...signed,
      mayFinish,
      source,
      sourceOf,
    });
  };

  return {
    async destinationOf(queueName) {
      const named = readQueueName(queueName);
      if (named === null) return sandbox;
      const { accountKey, ipPool } = named;
      const found = await delivery.route(named.domain, accountKey);
      if (found.kind === "outcome")
        return { ...here(localGroup, accountKey, (job) => found.decide(job, clock.now())), onlyFresh: true };
      const route = { ...found, group: shaping.groupFor(named.domain, found.group) };
      const { families: has, lastResort } = pools.sourcesOf(accountKey, ipPool);
      let reached = has.length === 0 ? [] : await delivery.families(route, has, accountKey);
      if (reached.length === 0 && lastResort.length > 0)
        reached = await delivery.families(route, lastResort, accountKey);
      if (has.length > 0 && reached.length === 0)
        return {
          ...here(localGroup, accountKey, () => noFamily(named.domain, ipPool, clock.now())),
          onlyFresh: true,
        };
      const family = reached.length === 1 ? (reached[0] ?? null) : null;
      return {
        group: route.group,
        account: accountKey,
        readyQueue: `${route.group} ${accountKey}.${ipPool} ${family ?? ""}`,
        sources: () => unpaused(pools.sourcesOf(accountKey, ipPool).usable(family)),
        prepare: messages.signAhead,
        sourcesOf: (wanted) => unpaused(pools.sourcesOf(accountKey, ipPool).others(wanted)),
        attempt: (job, mayFinish, source, sourceOf) => send(job, route, mayFinish, source, sourceOf),
      };
    },
    onNoSource(queueName) {
      const named = readQueueName(queueName);
      if (named) pools.noteWaiting(named.accountKey, named.ipPool);
    },
    isCaught: (job) => job.queueName === sandboxQueue && !isSimulated(job.domain),
    suppressedSince: (store) => async (job) => {
      const [entry] = await store.suppressed(job.message.accountKey, [job.canonical], clock.now());
      if (!entry) return null;
      const words = `the recipient was suppressed (${entry.reason}) after the message was accepted`;
      return local(clock.now(), "5.7.1", words, "suppressed");
    },
  };
}

/** No mail may be sent in the name of a domain that the account has deleted. */
function domainGone(job: Job, now: number): Outcome {
  const words = `${job.message.signingDomain} is no longer a domain of this account, so the message cannot be signed`;
  return local(now, "5.7.1", words, "invalid_sender");
}

/** Their mail hosts have addresses of one family, the pool of the other. */
function noFamily(domain: string, pool: string, now: number): Outcome {
  const words = `the pool ${pool} has no address of the family that the mail hosts of ${domain} have`;
  return local(now, "5.4.4", words, "routing_error");
}

/** Retention never removes what is unsent, so this is damage: what is missing cannot be sent. */
function contentGone(job: Job, now: number): Outcome {
  return local(now, "5.3.0", `the content of ${job.message.id} is no longer in the store`, "unclassified");
}

function local(now: number, status: string, words: string, classification: Classification): Outcome {
  const reply = { code: 550, status, text: `[local] ${words}` };
  return { kind: "bounced", source: "local", reply, classification, trace: untried(now) };
}
