// What an outcome changes: the recipient's state, the next attempt, the event, the suppression.
// Pure: it turns a job and its outcome into the one value that the store writes in one transaction.
import type { Recorder } from "../events/record.ts";
import type { IdMint } from "../ids.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { AttemptRecord } from "../model/attempt.ts";
import type { NewEvent } from "../model/event.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Settlement } from "../model/settlement.ts";
import { suppressionFor, suppresses } from "../suppressions/policy.ts";
import { nxdomainRecheckFor } from "../suppressions/nxdomain-recheck.ts";
import { localGroup } from "./shaping.ts";
import { nextAttemptAt, type NextAttempt, type RetrySchedule } from "./schedule.ts";

export interface SettleDeps {
  recorder: Recorder;
  mint: IdMint;
  schedule: RetrySchedule;
  owner: string;
  /** 0 ≤ x < 1, for the spread of retries. */
  random(): number;
  /** Mail of this job is caught in the local inbox when it is delivered. */
  isCaught(job: Job): boolean;
}

/** `now`: by the queue's clock, which never goes back. `group`: of the destination that was tried. */
export function settlementOf(
  deps: SettleDeps,
  job: Job,
  outcome: Outcome,
  now: number,
  group: string,
): Settlement {
  const next = outcome.kind === "deferred" ? retryOf(deps, job, outcome, now) : null;
  const provider = wasTried(outcome) && group !== localGroup ? providerOf(group) : null;
  const event = eventOf(deps.recorder, job, outcome, next, provider);
  const state = outcome.kind === "deferred" ? (next ? "deferred" : "bounced") : outcome.kind;
  return {
    recipientKey: job.key,
    messageKey: job.message.key,
    accountKey: job.message.accountKey,
    owner: deps.owner,
    outcome: state,
    nextAttemptAt: next?.at ?? null,
    at: event.occurredAt,
    attempt: job.attempt,
    record: recordOf(deps.mint, outcome, next),
    provider,
    smtpCode: outcome.reply.code,
    smtpStatus: outcome.reply.status,
    smtpResponse: outcome.reply.text,
    event,
    suppression: suppressionFor(job, outcome, event.id),
    nxdomainRecheck: nxdomainRecheckFor(job, outcome, event.id, event.occurredAt),
    catchInInbox: state === "delivered" && deps.isCaught(job),
  };
}

/** Of a domain that has limits of its own (`domain/group`) the group that it is counted with. */
const providerOf = (group: string): string => group.slice(group.lastIndexOf("/") + 1);

function retryOf(
  deps: SettleDeps,
  job: Job,
  outcome: Extract<Outcome, { kind: "deferred" }>,
  now: number,
): NextAttempt | null {
  const named = { delayMs: outcome.retryAfterMs, random: deps.random() };
  return nextAttemptAt(deps.schedule, job.attempt, job.message.queuedAt, now, named);
}

function eventOf(
  recorder: Recorder,
  job: Job,
  outcome: Outcome,
  next: NextAttempt | null,
  provider: string | null,
): NewEvent {
  switch (outcome.kind) {
    case "delivered":
      return recorder.delivered(job, outcome, provider);
    case "deferred":
      return next
        ? recorder.deferred(job, outcome, next.at, provider)
        : recorder.expired(job, outcome, provider);
    case "bounced": {
      const made = wasTried(outcome) ? job : { ...job, attempt: job.attempt - 1 };
      return recorder.bounced(made, outcome, { suppressed: suppresses(job, outcome) }, provider);
    }
  }
}

/** What is bounced for being on the suppression list was not tried: its attempt is not counted. */
function wasTried(outcome: Outcome): boolean {
  return outcome.kind !== "bounced" || outcome.classification !== "suppressed";
}

/** null where no attempt was made. */
function recordOf(mint: IdMint, outcome: Outcome, next: NextAttempt | null): AttemptRecord | null {
  if (!wasTried(outcome)) return null;
  const { startedAt, endedAt, sendingIp, mx, host, address, tls, ambiguous, dialogue } = outcome.trace;
  const decidedBy = outcome.kind !== "deferred" ? "final" : (next?.decidedBy ?? "expired");
  return {
    id: mint("att", endedAt),
    startedAt,
    endedAt,
    sendingIp,
    mx,
    host,
    address,
    tls,
    ambiguous,
    dialogue,
    decidedBy,
  };
}
