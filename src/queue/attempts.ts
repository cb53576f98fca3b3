// Attempts that run: each holds a slot, ends in an outcome, frees the slot at once and is settled in one transaction.
// What an outcome changes: settle.ts.
import { isoTime } from "../clock.ts";
import type { Log } from "../log.ts";
import { untried, type Outcome, type Unsent } from "../mail/outcome.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Settlement } from "../model/settlement.ts";
import type { WarmupSend } from "../model/warmup.ts";
import type { Family, Source } from "../pools/sources.ts";
import type { Store } from "../store/store.ts";
import type { Claims } from "./claims.ts";
import type { ReadyQueue, ReadyQueues, Slot } from "./ready-queues.ts";
import type { Destination } from "./routing.ts";
import type { Writes } from "./writes.ts";

/** One recipient on its way. `fresh`: it was accepted a moment ago, when nothing was known against it. */
export interface Attempt {
  queue: ReadyQueue;
  slot: Slot;
  job: Job;
  to: Destination;
  fresh: boolean;
}

export interface Attempts {
  start(attempt: Attempt): void;
  active(): number;
  /** When all that run are settled. */
  finished(): Promise<unknown>;
}

export interface AttemptsDeps {
  store: Pick<Store, "settle">;
  ready: Pick<ReadyQueues, "leave" | "moveTo">;
  claims: Pick<Claims, "requeue">;
  writes: Writes;
  /** The leases of this boot are still its own: an attempt may send its final dot. */
  leaseValid(): boolean;
  /** What the outcome of a job changes. `warmup`: what it counts at an address that warms up. */
  settlementOf(job: Job, outcome: Outcome, now: number, group: string, warmup: WarmupSend | null): Settlement;
  /** A bounce without an attempt where the recipient was suppressed since acceptance; null: try. */
  suppressedSince(job: Job): Promise<Outcome | null>;
  /** No mail of the account is tried: it is requeued, and the store holds it. */
  isPaused(accountKey: number): boolean;
  /** Mail of the scheduled queue gets no attempt (queue-pauses.ts). `provider`: or group of its destination; null: not known yet. */
  isQueuePaused(queueName: string, provider: string | null): boolean;
  /** A delivery is on disk. */
  onDelivered?(job: Job): void;
  /** The recipient waits in the store until `dueAt`. */
  onDeferred(job: Job, dueAt: number): void;
  stopping(): boolean;
  now(): number;
  log: Log;
}

/** What was not tried, since its address could not be used after all. */
const unsentRetryMs = 10_000;

export function createAttempts(deps: AttemptsDeps): Attempts {
  const { store, ready, claims, writes, now, log } = deps;
  const running = new Set<Promise<void>>();
  let active = 0;

  const run = async (attempt: Attempt): Promise<void> => {
    const { queue, job, to } = attempt;
    let { slot } = attempt;
    const free = (reached: boolean): void => {
      active -= 1;
      ready.leave(queue, slot, reached);
    };
    const startedAt = now();
    if (deps.isPaused(job.message.accountKey) || deps.isQueuePaused(job.queueName, to.group)) {
      free(false);
      return claims.requeue([job], startedAt);
    }
    const sourceOf = (family: Family): Source | null => {
      const other = ready.moveTo(to.sourcesOf(family), queue, slot);
      slot = other ?? slot;
      return other?.source ?? null;
    };
    let outcome: Outcome | Unsent;
    try {
      outcome =
        (attempt.fresh ? null : await deps.suppressedSince(job)) ??
        (await to.attempt(job, deps.leaseValid, slot.source, sourceOf));
    } catch (error) {
      const { id } = job.message;
      log.error({ message: id, to: job.to, err: error }, "an attempt failed by a fault of this program");
      outcome = faultOutcome(startedAt, now());
    }
    if ("classification" in outcome && outcome.classification === "rate_limited")
      slot.limiter.throttle.slowDown(`${outcome.reply.code} ${outcome.reply.text}`);
    const reached = hasReached(outcome, slot);
    free(reached);
    await ended(job, outcome, to.group, reached ? slot.warmup : null);
  };

  const ended = async (
    job: Job,
    outcome: Outcome | Unsent,
    group: string,
    warmup: WarmupSend | null,
  ): Promise<void> => {
    if (outcome.kind === "unsent") {
      log.warn({ message: job.message.id, to: job.to, why: outcome.why }, "not attempted; requeued");
      return claims.requeue([job], now() + unsentRetryMs);
    }
    if (deps.stopping() && wasCutShort(outcome)) return claims.requeue([job], now());
    return settle(job, outcome, now(), group, warmup);
  };

  /** Made within the write, so that an outcome which cannot be put into words is kept too, and not sent again. */
  const settle = (
    job: Job,
    outcome: Outcome,
    at: number,
    group: string,
    warmup: WarmupSend | null,
  ): Promise<void> => {
    let settlement: Settlement | null = null;
    return writes.add({
      call: "settle",
      async run() {
        settlement ??= deps.settlementOf(job, outcome, at, group, warmup);
        if (!(await store.settle(settlement))) return;
        logOutcome(log, job, outcome, settlement);
        if (settlement.outcome === "delivered") deps.onDelivered?.(job);
      },
      tried() {
        const dueAt = settlement?.nextAttemptAt ?? null;
        if (dueAt !== null) deps.onDeferred(job, dueAt);
      },
    });
  };

  return {
    start(attempt) {
      active += 1;
      const work = run(attempt).finally(() => running.delete(work));
      running.add(work);
    },
    active: () => active,
    finished: () => Promise.all(running),
  };
}

const loggedReply = 200;

/** One line an outcome, once it is on disk. */
function logOutcome(log: Log, job: Job, { reply, trace }: Outcome, settlement: Settlement): void {
  const { attempt, outcome, nextAttemptAt } = settlement;
  log.info(
    {
      message: job.message.id,
      to: job.to,
      attempt,
      code: reply.code,
      status: reply.status,
      reply: reply.text.slice(0, loggedReply),
      host: trace.host,
      address: trace.address,
      from_ip: trace.sendingIp,
      ms: trace.endedAt - trace.startedAt,
      ...(nextAttemptAt === null ? {} : { next_attempt_at: isoTime(nextAttemptAt) }),
    },
    outcome,
  );
}

/** A server was connected from the slot's address. */
function hasReached(outcome: Outcome | Unsent, { source }: Slot): boolean {
  if (outcome.kind === "unsent" || outcome.trace.sendingIp === null) return false;
  return source.address === null || outcome.trace.sendingIp === source.address;
}

/** A fault of ours is a deferral like any other: it is shown, tried again by the schedule, and it expires. */
function faultOutcome(startedAt: number, endedAt: number): Outcome {
  const text = "[local] a fault of this program, which its log describes";
  return {
    kind: "deferred",
    reply: { code: 451, status: "4.3.0", text },
    classification: "unclassified",
    retryAfterMs: null,
    trace: untried(startedAt, endedAt),
  };
}

/** Of an attempt that ends while the program stops: no server's word and nothing sent, so it proves nothing. */
function wasCutShort(outcome: Outcome): boolean {
  return outcome.kind === "deferred" && !outcome.trace.ambiguous && outcome.reply.text.startsWith("[local] ");
}
