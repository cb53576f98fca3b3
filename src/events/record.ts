// Turns what happened into the event that is recorded. The body is written here, once, as text (data-text.ts): the store
// keeps it, webhooks send it and GET /v1/events shows it, byte for byte. Field order is fixed: the common fields of every
// event of a recipient first, then the type's own. Nothing is checked against the type's schema here: this runs once a recipient,
// and the tests do. What is recorded when is the queue's to say; who hears of it is the webhooks'.
import type { Clock } from "../clock.ts";
import { isoTime } from "../clock.ts";
import type { IdMint } from "../ids.ts";
import type { Classification } from "../model/classification.ts";
import type { Complaint } from "../mail/arf.ts";
import type { Failure } from "../mail/failure.ts";
import { classifyFailure, failureType } from "../mail/failure.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { NewEvent } from "../model/event.ts";
import { mailFacts } from "../model/facts.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Endpoint } from "../model/webhook.ts";
import { eventCatalog } from "./catalog.ts";
import { countersMask, countingOf } from "./counted.ts";
import {
  bounceType,
  cause,
  common,
  ended,
  expiredUntried,
  members,
  replied,
  reportedReply,
  timeText,
  tried,
} from "./data-text.ts";
import type { CountedData, EventCatalog, EventEntry, Fields, ValuesOf } from "./entry.ts";
import { sampleJob } from "./sample.ts";
import { eventTypesOf } from "./subscriptions.ts";

export type Delivered = Extract<Outcome, { kind: "delivered" }>;
export type Deferred = Extract<Outcome, { kind: "deferred" }>;
export type Bounced = Extract<Outcome, { kind: "bounced" }>;

/** The types of a catalogue that are about a recipient, or about an address. */
type TypesAbout<About, Catalog> = {
  [Type in keyof Catalog]: Catalog[Type] extends { about: About } ? Type : never;
}[keyof Catalog] &
  string;
type DataOf<Entry> = Entry extends { data: infer Data extends Fields } ? ValuesOf<Data> : never;

export interface Recorder<Catalog extends EventCatalog = typeof eventCatalog> {
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
  /** What happened to a recipient `at`, with the type's own data. What is written once an attempt has a method above. */
  ofRecipient<Type extends TypesAbout<"recipient", Catalog>>(
    type: Type,
    job: Job,
    at: number,
    data: DataOf<Catalog[Type]>,
    counted?: CountedEvent,
  ): NewEvent;
  /** What happened `at` to an address that an account sends from. */
  ofAddress<Type extends TypesAbout<"address", Catalog>>(
    type: Type,
    accountKey: number,
    at: number,
    data: DataOf<Catalog[Type]>,
  ): NewEvent;
  /** A synthetic event of `type` with `data.test` true, to be sent and not recorded; by default of the first subscribed type. */
  test(endpoint: Endpoint, type?: keyof Catalog & string): NewEvent;
}

/** The delivery that a report is about, as far as it is known: who took it over, from which address of ours. */
export interface Handover {
  receivingMta: string | null;
  sendingIp: string | null;
  provider: string | null;
}

/** What of an event is counted where. */
export interface CountedEvent extends CountedData {
  sendingIp: string | null;
  provider: string | null;
  classification?: Classification;
}

export function createRecorder(deps: { clock: Clock; mint: IdMint }): Recorder {
  return recorderOf(eventCatalog, deps);
}

/** The same of a catalogue with more types. */
export function recorderOf<Catalog extends typeof eventCatalog & EventCatalog>(
  catalog: Catalog,
  deps: { clock: Clock; mint: IdMint },
): Recorder<Catalog> {
  type Type = keyof Catalog & string;
  const entries: Readonly<Record<Type, EventEntry>> = catalog;
  const countings = mapped(entries, countingOf);
  const write = (
    type: Type,
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
      typeBit: entries[type].bit,
      occurredAt,
      receivedAt,
      messageKey: job === null ? null : job.message.key,
      recipient: job === null ? null : job.canonical,
      counters: job === null ? 0 : countersMask(countings[type], counted),
      facts: job === null ? "" : dimensionsOf(job, counted),
      body: `{"event":"${type}","event_id":"${id}","occurred_at":"${isoTime(occurredAt)}","received_at":"${isoTime(receivedAt)}","data":{${data}}}`,
    };
  };
  const ofMessage = (
    type: Type,
    job: Job,
    happenedAt: number,
    own: string,
    counted: CountedEvent,
  ): NewEvent => write(type, job.message.accountKey, happenedAt, `${common(job)},${own}`, job, counted);

  return {
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
    ofRecipient: (type, job, at, data, counted = uncounted) =>
      ofMessage(type, job, at, members(data), counted),
    ofAddress: (type, accountKey, at, data) => write(type, accountKey, at, members(data), null),
    test(endpoint, type = eventTypesOf(endpoint.eventMask)[0] ?? "message.delivered") {
      const now = deps.clock.now();
      const { about, sample } = entries[type];
      const event =
        about === "recipient"
          ? ofMessage(
              type,
              sampleJob(endpoint.accountKey, deps.mint("msg", now), now),
              now,
              members(sample(now)),
              uncounted,
            )
          : write(type, endpoint.accountKey, now, members(sample(now)), null);
      return { ...event, messageKey: null, recipient: null, counters: 0, facts: "" };
    },
  };
}

const uncounted: CountedEvent = { sendingIp: null, provider: null };

function mapped<Name extends string, From, To>(
  of: Readonly<Record<Name, From>>,
  by: (from: From) => To,
): Record<Name, To> {
  const pairs = Object.entries<From>(of).map(([name, from]) => [name, by(from)]);
  return Object.fromEntries(pairs) as Record<Name, To>;
}

function dimensionsOf({ message, domain }: Job, by: CountedEvent): string {
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
