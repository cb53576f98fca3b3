// Turns what happened to a recipient into the event that is recorded. The body is written here, once,
// as text: the store keeps it, webhooks send it and GET /v1/events shows it, byte for byte. Field order is fixed:
// the common fields of every message.* event first, then the type's own. This runs once a recipient, so strings
// are joined by hand, only free text goes through JSON.stringify, and what was stored as JSON (tags, metadata) is
// spliced in unparsed. What is recorded when is the queue's to say; who hears of it is the webhooks'.
import type { Clock } from "../clock.ts";
import { isoTime } from "../clock.ts";
import type { IdMint } from "../ids.ts";
import type { Classification } from "../model/classification.ts";
import { bounceCategories } from "../model/classification.ts";
import type { Complaint } from "../mail/arf.ts";
import type { Failure } from "../mail/failure.ts";
import { classifyFailure, failureType, replyOf } from "../mail/failure.ts";
import type { AttemptTrace, Outcome, OutcomeReply } from "../mail/outcome.ts";
import type { BounceType, OutcomeSource } from "../model/bounce.ts";
import type { NewEvent } from "../model/event.ts";
import { mailFacts } from "../model/facts.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Endpoint } from "../model/webhook.ts";
import type { EventType } from "./catalog.ts";
import { eventCatalog, eventTypesOf } from "./catalog.ts";
import { countersMask, type CountedData } from "./counted.ts";
import { sampleData, sampleJob, sampleReplies, sampleTrace } from "./sample.ts";

export type Delivered = Extract<Outcome, { kind: "delivered" }>;
export type Deferred = Extract<Outcome, { kind: "deferred" }>;
export type Bounced = Extract<Outcome, { kind: "bounced" }>;

export interface Recorder {
  /** `provider`, here and below: the group of MX hosts that was tried, under which the event is counted. */
  delivered(job: Job, outcome: Delivered, provider?: string | null): NewEvent;
  /** `nextAttemptAt`: when the next try is due, milliseconds since 1970. */
  deferred(job: Job, outcome: Deferred, nextAttemptAt: number, provider?: string | null): NewEvent;
  /** `suppressed`: this bounce puts the recipient on the suppression list (suppressions/policy.ts). */
  bounced(job: Job, outcome: Bounced, options: { suppressed: boolean }, provider?: string | null): NewEvent;
  /** The message grew too old. `last` is the deferral that ended it, its reply kept; null where no try was made now. */
  expired(job: Job, last: Deferred | null, provider?: string | null): NewEvent;
  /** A report (DSN) says that the delivery failed. */
  reported(job: Job, failure: Failure, sent: Handover, options: { suppressed: boolean }): NewEvent;
  /** The recipient's provider reported the message. `source`: the feedback loop. `confirmed`: it counts for the abuse guard. */
  complained(
    job: Job,
    complaint: Complaint,
    sent: Handover,
    source: string,
    options: { confirmed: boolean },
  ): NewEvent;
  /** A synthetic event of `type` with `data.test` true, to be sent and not recorded; by default of the first subscribed type. */
  test(endpoint: Endpoint, type?: EventType): NewEvent;
}

/** The delivery that a report is about, as far as it is known: who took it over, from which address of ours. */
export interface Handover {
  receivingMta: string | null;
  sendingIp: string | null;
  provider: string | null;
}

/** What of an event is counted where. */
interface CountedEvent extends CountedData {
  sendingIp: string | null;
  provider: string | null;
  classification?: Classification;
}

export function createRecorder(deps: { clock: Clock; mint: IdMint }): Recorder {
  const write = (
    type: EventType,
    accountKey: number,
    happenedAt: number,
    data: string,
    job: Job | null,
    counted: CountedEvent = uncounted,
  ): NewEvent => {
    const now = deps.clock.now();
    // A clock that was set back must not let an event seem older than the one before it, nor
    // recorded before it happened.
    const occurredAt = Math.max(happenedAt, job?.lastEventAt ?? 0);
    const receivedAt = Math.max(now, occurredAt);
    const id = deps.mint("evt", now);
    return {
      id,
      accountKey,
      type,
      typeBit: eventCatalog[type].bit,
      occurredAt,
      receivedAt,
      messageKey: job === null ? null : job.message.key,
      recipient: job === null ? null : job.canonical,
      counters: job === null ? 0 : countersMask(type, counted),
      facts: job === null ? "" : factsOf(job, counted),
      body: `{"event":"${type}","event_id":"${id}","occurred_at":"${isoTime(occurredAt)}","received_at":"${isoTime(receivedAt)}","data":{${data}}}`,
    };
  };
  const ofMessage = (
    type: EventType,
    job: Job,
    happenedAt: number,
    own: string,
    counted: CountedEvent,
  ): NewEvent => write(type, job.message.accountKey, happenedAt, `${common(job)},${own}`, job, counted);

  const recorder: Omit<Recorder, "test"> = {
    delivered: (job, { reply, trace }, provider = null) =>
      ofMessage("message.delivered", job, trace.endedAt, `${replied(reply, trace)},${tried(job, trace)}`, {
        sendingIp: trace.sendingIp,
        provider,
      }),
    deferred: (job, { reply, trace, classification }, nextAttemptAt, provider = null) =>
      ofMessage(
        "message.deferred",
        job,
        trace.endedAt,
        `${replied(reply, trace)},${tried(job, trace)},"next_attempt_at":"${isoTime(nextAttemptAt)}",${cause("soft", classification)}`,
        { sendingIp: trace.sendingIp, provider },
      ),
    bounced: (job, { reply, trace, classification, source }, { suppressed }, provider = null) =>
      ofMessage(
        "message.bounced",
        job,
        trace.endedAt,
        ended(job, bounceType(reply.code), classification, reply, trace, source, suppressed),
        { bounceType: bounceType(reply.code), classification, sendingIp: trace.sendingIp, provider },
      ),
    reported: (job, failure, sent, { suppressed }) => {
      const { sendingIp, provider } = sent;
      const by = { host: failure.mta ?? sent.receivingMta, sendingIp };
      const [type, classification] = [failureType(failure), classifyFailure(failure)];
      return ofMessage(
        "message.bounced",
        job,
        deps.clock.now(),
        `${cause(type, classification)},${replied(reportedReply(failure), by)},` +
          `"attempt":${job.attempt},"source":"dsn","suppressed":${suppressed},"reported_at":${timeText(failure.reportedAt)}`,
        { bounceType: type, classification, sendingIp, provider },
      );
    },
    complained: (job, complaint, sent, source, { confirmed }) =>
      ofMessage(
        "message.complained",
        job,
        deps.clock.now(),
        `"complaint_source":${JSON.stringify(source)},"complaint_type":"${complaint.type}","feedback_type":${JSON.stringify(complaint.feedbackType)},` +
          `"reported_at":${timeText(complaint.reportedAt ?? deps.clock.now())},"sending_ip":${JSON.stringify(sent.sendingIp ?? complaint.sendingIp)}`,
        { sendingIp: sent.sendingIp, provider: sent.provider, confirmed },
      ),
    expired: (job, last, provider = null) =>
      ofMessage(
        "message.bounced",
        job,
        last?.trace.endedAt ?? deps.clock.now(),
        ended(
          job,
          "soft",
          "message_expired",
          last?.reply ?? expiredUntried,
          last?.trace ?? null,
          "local",
          false,
        ),
        {
          bounceType: "soft",
          classification: "message_expired",
          sendingIp: last?.trace.sendingIp ?? null,
          provider,
        },
      ),
  };
  return {
    ...recorder,
    test(endpoint, type = eventTypesOf(endpoint.eventMask)[0] ?? "message.delivered") {
      const now = deps.clock.now();
      const job = sampleJob(endpoint.accountKey, deps.mint("msg", now), now);
      const trace = sampleTrace(now);
      const event = ((): NewEvent => {
        switch (type) {
          case "message.delivered":
            return recorder.delivered(job, { kind: "delivered", reply: sampleReplies.delivered, trace });
          case "message.deferred":
            return recorder.deferred(
              job,
              {
                kind: "deferred",
                reply: sampleReplies.deferred,
                classification: "greylisted",
                retryAfterMs: null,
                trace,
              },
              now + 60_000,
            );
          case "message.bounced":
            return recorder.bounced(
              job,
              {
                kind: "bounced",
                source: "smtp",
                reply: sampleReplies.bounced,
                classification: "invalid_recipient",
                trace,
              },
              { suppressed: false },
            );
          case "ip.blacklisted":
          case "ip.delisted":
            return write(type, endpoint.accountKey, now, sampleData(type, now), null);
          default:
            return ofMessage(type, job, now, sampleData(type, now), uncounted);
        }
      })();
      return { ...event, messageKey: null, recipient: null, counters: 0, facts: "" };
    },
  };
}

const uncounted: CountedEvent = { sendingIp: null, provider: null };

function factsOf({ message, domain }: Job, by: CountedEvent): string {
  const { accountKey, test, signingDomain, ipPool, tagsJson } = message;
  return mailFacts({
    accountKey,
    test,
    domain: signingDomain,
    pool: ipPool,
    tagsJson,
    recipientDomain: domain,
    ip: by.sendingIp,
    provider: by.provider,
    classification: by.classification ?? null,
  });
}

const expiredUntried: OutcomeReply = {
  code: 451,
  status: "4.4.7",
  text: "[local] the message expired before another attempt was made",
};

/** Permanent or temporary is the first digit alone (RFC 5321 §4.2.1). */
function bounceType(code: number): BounceType {
  return code >= 500 && code < 600 ? "hard" : code >= 400 && code < 500 ? "soft" : "undetermined";
}

function common(job: Job): string {
  const { id, from, subject, tagsJson, metadataJson, test } = job.message;
  return (
    `"message_id":"${id}","to":${JSON.stringify(job.to)},"from":${JSON.stringify(from)},"subject":${JSON.stringify(subject)},` +
    `"tags":${tagsJson},"metadata":${metadataJson}${test ? ',"test":true' : ""}`
  );
}

/** A report that quotes no reply has a code of its class, and 550 where not even that is known: it has failed. */
export function reportedReply(failure: Failure): OutcomeReply {
  const { code, status, text } = replyOf(failure);
  return { code: code === 0 ? 550 : code, status, text };
}

function timeText(ms: number | null): string {
  return ms === null ? "null" : `"${isoTime(ms)}"`;
}

/** The reply and who gave it. A receiver without enhanced codes gets X.0.0, "other undefined status" (RFC 3463 §3.1). */
function replied(reply: OutcomeReply, by: Pick<AttemptTrace, "host" | "sendingIp"> | null): string {
  const status = reply.status ?? `${Math.trunc(reply.code / 100)}.0.0`;
  return (
    `"smtp_code":"${reply.code}","smtp_status":"${status}","smtp_response":${JSON.stringify(reply.text)},` +
    `"receiving_mta":${JSON.stringify(by?.host ?? null)},"sending_ip":${JSON.stringify(by?.sendingIp ?? null)}`
  );
}

function tried(job: Job, trace: AttemptTrace): string {
  const sinceQueuedMs = Math.max(0, Math.round(trace.endedAt - job.message.queuedAt));
  return `"attempt":${job.attempt},"delivery_time_ms":${sinceQueuedMs},"tls":${JSON.stringify(trace.tls)}`;
}

function cause(type: BounceType, classification: Classification): string {
  return `"bounce_type":"${type}","bounce_classification":"${classification}","bounce_category":"${bounceCategories[classification]}"`;
}

function ended(
  job: Job,
  type: BounceType,
  classification: Classification,
  reply: OutcomeReply,
  trace: AttemptTrace | null,
  source: OutcomeSource,
  suppressed: boolean,
): string {
  return `${cause(type, classification)},${replied(reply, trace)},"attempt":${job.attempt},"source":"${source}","suppressed":${suppressed}`;
}
