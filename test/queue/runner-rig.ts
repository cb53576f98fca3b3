// A queue in memory, and a runner on the manual clock whose attempts end when the test says so.
import { silentLog } from "../../src/log.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Settlement } from "../../src/model/settlement.ts";
import type { Destination } from "../../src/queue/routing.ts";
import { createRunner, type Runner, type RunnerDeps } from "../../src/queue/runner.ts";
import { createShaping, type Shaping } from "../../src/queue/shaping.ts";
import { systemSources, type Family, type Source } from "../../src/pools/sources.ts";
import { ManualClock } from "../support/clock.ts";
import { deliveredOutcome, makeJob } from "../support/jobs.ts";

/** A queue in memory with the store's meaning: waiting jobs by scheduled queue, leases, outcomes. */
export class FakeQueue {
  waiting: { job: Job; dueAt: number }[] = [];
  leased = new Map<number, Job>();
  settled: Settlement[] = [];
  released: number[] = [];
  claims: { queueName: string; limit: number }[] = [];
  /** Thrown by every call that writes. */
  refuse: Error | null = null;
  refuseSettle: Error | null = null;

  add(job: Job, dueAt: number): void {
    this.waiting.push({ job, dueAt });
  }
  store(): RunnerDeps["store"] {
    return {
      scheduledQueues: async (after) => {
        const scheduledQueues = new Map<string, number>();
        for (const { job, dueAt } of this.waiting)
          scheduledQueues.set(job.queueName, Math.min(dueAt, scheduledQueues.get(job.queueName) ?? Infinity));
        return [...scheduledQueues]
          .filter(([queueName]) => after === null || queueName > after)
          .map(([queueName, dueAt]) => ({ queueName, dueAt }));
      },
      claimDue: async ({ queueName, limit, now }) => {
        if (this.refuse) throw this.refuse;
        this.claims.push({ queueName, limit });
        const due = this.waiting
          .filter((entry) => entry.job.queueName === queueName && entry.dueAt <= now)
          .slice(0, limit);
        this.waiting = this.waiting.filter((entry) => !due.includes(entry));
        for (const { job } of due) this.leased.set(job.key, job);
        const left = this.waiting
          .filter((entry) => entry.job.queueName === queueName)
          .map((entry) => entry.dueAt);
        return { jobs: due.map(({ job }) => job), nextDueAt: left.length > 0 ? Math.min(...left) : null };
      },
      release: async (_owner, keys, dueAt) => {
        if (this.refuse) throw this.refuse;
        this.released.push(...keys);
        for (const key of keys) {
          const job = this.leased.get(key);
          if (job) this.add(job, dueAt);
          this.leased.delete(key);
        }
      },
      takeBackLeases: async () => 0,
      settle: async (settlement) => {
        const refusal = this.refuse ?? this.refuseSettle;
        if (refusal) throw refusal;
        this.settled.push(settlement);
        const job = this.leased.get(settlement.recipientKey);
        this.leased.delete(settlement.recipientKey);
        if (job && settlement.nextAttemptAt !== null)
          this.add({ ...job, attempt: job.attempt + 1 }, settlement.nextAttemptAt);
        return true;
      },
    };
  }
}

export interface Bench {
  queue: FakeQueue;
  clock: ManualClock;
  runner: Runner;
  shaping: Shaping;
  /** Attempts that were begun, in order. */
  begun: Job[];
  /** The same, with the address that each left from. */
  left: { job: Job; source: Source }[];
  /** Ends the oldest attempt at a domain. */
  finish(domain: string, outcome?: Outcome): void;
  running(domain: string): number;
}

export const system = systemSources.usable(null);
export const from = (address: string, weight = 1): Source => ({ address, hostname: null, weight });

export function bench(
  options: {
    hangs?: string[];
    shaping?: unknown;
    suppressed?: (job: Job) => Outcome | null;
    paused?: Set<number>;
    /** Runs before a scheduled queue is routed. */
    routing?: (queueName: string) => Promise<void>;
    /** Runs before an outcome is turned into a settlement. */
    settling?: (job: Job) => void;
    groupOf?: (queueName: string) => string;
    readyQueueOf?: (queueName: string) => string;
    accountOf?: (queueName: string) => number;
    sources?: (queueName: string) => readonly Source[];
    unsent?: (source: Source) => boolean;
    sourcesOf?: (family: Family) => readonly Source[];
    /** Attempts that find no connection over IPv4 and ask for an address of the other family. */
    moves?: (job: Job) => boolean;
    random?: () => number;
    /** Gets the scheduled queues whose mail waits for an address. */
    noSource?: string[];
  } = {},
): Bench {
  const queue = new FakeQueue();
  const clock = new ManualClock();
  const begun: Job[] = [];
  const left: { job: Job; source: Source }[] = [];
  const open: { job: Job; end: (outcome: Outcome) => void }[] = [];
  const groupOf = (queueName: string) => options.groupOf?.(queueName) ?? queueName.split("/")[1] ?? queueName;
  const destination = (queueName: string): Destination => ({
    group: groupOf(queueName),
    account: options.accountOf?.(queueName) ?? 1,
    readyQueue: options.readyQueueOf?.(queueName) ?? groupOf(queueName),
    sources: () => options.sources?.(queueName) ?? system,
    sourcesOf: (family) => options.sourcesOf?.(family) ?? [],
    prepare: () => undefined,
    attempt: (job, _mayFinish, first, sourceOf) => {
      const source = (options.moves?.(job) ? sourceOf(6) : null) ?? first;
      begun.push(job);
      left.push({ job, source });
      if (options.unsent?.(source)) return Promise.resolve({ kind: "unsent", why: "no such address" });
      if (!options.hangs?.includes(job.domain)) return Promise.resolve(deliveredOutcome());
      return new Promise((end) => open.push({ job, end }));
    },
  });
  const shaping = createShaping(options.shaping ?? null);
  const runner = createRunner({
    store: queue.store(),
    destinationOf: async (queueName) => {
      await options.routing?.(queueName);
      return destination(queueName);
    },
    suppressedSince: async (job) => options.suppressed?.(job) ?? null,
    isPaused: (accountKey) => options.paused?.has(accountKey) ?? false,
    onNoSource: (queueName) => void options.noSource?.push(queueName),
    settlementOf: (job, outcome, now, group) => {
      options.settling?.(job);
      return {
        recipientKey: job.key,
        outcome: outcome.kind,
        provider: group,
        nextAttemptAt: outcome.kind === "deferred" ? now + 60_000 : null,
      } as Settlement;
    },
    shaping,
    random: options.random ?? Math.random,
    owner: "boot",
    leaseValid: () => true,
    clock,
    log: silentLog,
  });
  return {
    queue,
    clock,
    runner,
    shaping,
    begun,
    left,
    finish(domain, outcome = deliveredOutcome()) {
      const at = open.findIndex(({ job }) => job.domain === domain);
      open.splice(at, 1)[0]?.end(outcome);
    },
    running: (domain) => open.filter(({ job }) => job.domain === domain).length,
  };
}

export const jobsOf = (domain: string, from: number, count: number): Job[] =>
  Array.from({ length: count }, (_, i) => makeJob(from + i, { domain }));
