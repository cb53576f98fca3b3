// The data of an event as text, the inside of a JSON object. What is written once an attempt is joined by hand: only free
// text goes through JSON.stringify, and what was stored as JSON (tags, metadata) is spliced in unparsed.
import { isoTime } from "../clock.ts";
import { bounceCategories, type Classification } from "../model/classification.ts";
import { replyOf, type Failure } from "../mail/failure.ts";
import type { AttemptTrace, OutcomeReply } from "../mail/outcome.ts";
import type { BounceType, OutcomeSource } from "../model/bounce.ts";
import type { Job } from "../model/queued-recipient.ts";

/** Of any object. */
export const members = (data: object): string => JSON.stringify(data).slice(1, -1);

export const expiredUntried: OutcomeReply = {
  code: 451,
  status: "4.4.7",
  text: "[local] the message expired before another attempt was made",
};

/** Permanent or temporary is the first digit alone (RFC 5321 §4.2.1). */
export function bounceType(code: number): BounceType {
  return code >= 500 && code < 600 ? "hard" : code >= 400 && code < 500 ? "soft" : "undetermined";
}

export function common(job: Job): string {
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

export function timeText(ms: number | null): string {
  return ms === null ? "null" : `"${isoTime(ms)}"`;
}

/** The reply and who gave it. A receiver without enhanced codes gets X.0.0, "other undefined status" (RFC 3463 §3.1). */
export function replied(reply: OutcomeReply, by: Pick<AttemptTrace, "host" | "sendingIp"> | null): string {
  const status = reply.status ?? `${Math.trunc(reply.code / 100)}.0.0`;
  return (
    `"smtp_code":"${reply.code}","smtp_status":"${status}","smtp_response":${JSON.stringify(reply.text)},` +
    `"receiving_mta":${JSON.stringify(by?.host ?? null)},"sending_ip":${JSON.stringify(by?.sendingIp ?? null)}`
  );
}

export function tried(job: Job, trace: AttemptTrace): string {
  const sinceQueuedMs = Math.max(0, Math.round(trace.endedAt - job.message.queuedAt));
  return `"attempt":${job.attempt},"delivery_time_ms":${sinceQueuedMs},"tls":${JSON.stringify(trace.tls)}`;
}

export function cause(type: BounceType, classification: Classification): string {
  return `"bounce_type":"${type}","bounce_classification":"${classification}","bounce_category":"${bounceCategories[classification]}"`;
}

export function ended(
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
