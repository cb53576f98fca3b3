// Which bounces suppress the recipient: only a permanent failure that is the recipient's own fault.
// A block, a full mailbox, a policy, an expiry or a fault of ours says nothing about the address, and one bad day of a
// sender's reputation must not eat a list of good customers. mail/classify.ts decides the cause; complaints and
// unsubscribes are feedback's. The list itself, and which reason wins, is the store's.
import { classifyReply } from "../mail/classify.ts";
import type { Classification } from "../model/classification.ts";
import { classifyFailure, failureType, replyOf, type Failure } from "../mail/failure.ts";
import type { Outcome, OutcomeReply } from "../mail/outcome.ts";
import type { OutcomeSource } from "../model/bounce.ts";
import type { Job } from "../model/queued-recipient.ts";
import { simulatorDomain } from "../model/simulator.ts";
import type { NewSuppression } from "../model/suppression.ts";

const longestDescription = 500;

/** `local`: our own resolver said so, and no server. */
type Verdict = (reply: OutcomeReply, source: OutcomeSource) => boolean;
const always: Verdict = () => true;
const never: Verdict = () => false;

/** Row by row: does a permanent failure of this cause suppress, and why. */
const verdicts = {
  invalid_recipient: always, // the mailbox does not exist (5.1.1): every further mail costs reputation
  inactive_mailbox: always, // the mailbox was closed or disabled (5.2.1)
  // A server that says 5.1.2 has looked the domain up and given up on it. What our own resolver says counts at once only
  // for 556, where the domain publishes that it takes no mail (null MX, RFC 7505); that there is no such domain, one
  // broken resolver may say of all, so a second look-up has to agree (nxdomain-recheck.ts).
  invalid_domain: (reply, source) => source === "smtp" || reply.code === 556,
  mailbox_full: never, // the owner may clear it
  spam_content: never, // about this message
  attachment_rejected: never, // about this message
  message_too_large: never, // about this message
  reputation_block: never, // about our address or domain
  rate_limited: never, // about our sending rate
  authentication_failed: never, // about our SPF, DKIM or DMARC
  greylisted: never, // passes by waiting
  recipient_policy: never, // "may be temporary": the recipient exists and is choosy
  invalid_sender: never, // about our From
  relay_denied: never, // sent to the wrong server
  suppressed: never, // is on the list already
  dns_failure: never, // could not tell
  connection_failed: never, // could not tell
  tls_failure: never, // could not tell
  routing_error: never, // a misconfiguration, there or here
  protocol_error: never, // says nothing about the recipient
  receiver_error: never, // says nothing about the recipient
  message_expired: never, // temporary failures only
  unclassified: never, // an unknown reply never suppresses
} satisfies Record<Classification, Verdict>;

/** Test messages never leave the machine: their outcomes say nothing about the recipient. */
export function isSimulated(job: Job): boolean {
  return job.message.test || job.domain === simulatorDomain;
}

/** True where the outcome puts the recipient on the list. */
export function suppresses(job: Job, outcome: Outcome): boolean {
  if (outcome.kind !== "bounced" || isSimulated(job)) return false;
  return isPermanent(outcome.reply) && verdicts[outcome.classification](outcome.reply, outcome.source);
}

/** The same for a reply in a session, by its text alone. */
export function replySuppresses(reply: OutcomeReply): boolean {
  return isPermanent(reply) && verdicts[classifyReply(reply)](reply, "smtp");
}

/**
 * RFC 5321 §4.2.1: the first digit decides what happens. Where the enhanced status contradicts it (`550 4.2.1`), the
 * receiver has not said for good that the address is bad.
 */
function isPermanent({ code, status }: OutcomeReply): boolean {
  return code >= 500 && code <= 599 && (status === null || status.startsWith("5"));
}

/**
 * True where a failure that another server reports (a DSN) suppresses: by the same judgement as in a session, and only
 * where nothing in the report says that it is temporary, leaves it open, or contradicts itself.
 */
export function failureSuppresses(failure: Failure): boolean {
  if (failureType(failure) === "soft" || failure.unknownAction || failure.mixedClasses) return false;
  if (failure.code !== null && failure.code < 500) return false;
  // Words alone, of which not even the address is said that they are about.
  if (failure.code === null && failure.status === null && failure.recipients.length === 0) return false;
  return verdicts[classifyFailure(failure)](replyOf(failure), "smtp");
}

/** The entry to add with the bounce `eventId`, or null if the outcome does not suppress. */
export function suppressionFor(job: Job, outcome: Outcome, eventId: string): NewSuppression | null {
  return suppresses(job, outcome) ? bounceEntry(job, outcome.reply, eventId) : null;
}

/** A complaint suppresses the recipient; so does an unsubscribe that arrives as one. */
export function complaintSuppression(job: Job, source: string, eventId: string): NewSuppression {
  return {
    accountKey: job.message.accountKey,
    canonical: job.canonical,
    email: job.to,
    reason: "complaint",
    source: "system",
    description: `reported by ${source}`,
    messageId: job.message.id,
    eventId,
    smtpCode: null,
    smtpStatus: null,
    expiresAt: null,
  };
}

/** An unsubscribe, of whatever form; its message may be gone. `of.email`: as the sender wrote it. */
export function unsubscribeSuppression(
  of: Pick<NewSuppression, "accountKey" | "canonical" | "email" | "messageId" | "eventId">,
): NewSuppression {
  return {
    ...of,
    reason: "unsubscribe",
    source: "recipient",
    description: null,
    smtpCode: null,
    smtpStatus: null,
    expiresAt: null,
  };
}

/** The entry of a hard bounce, in a session or reported. */
export function bounceEntry(job: Job, reply: OutcomeReply, eventId: string): NewSuppression {
  return {
    accountKey: job.message.accountKey,
    canonical: job.canonical,
    email: job.to,
    reason: "hard_bounce",
    source: "system",
    description: reply.text.slice(0, longestDescription),
    messageId: job.message.id,
    eventId,
    smtpCode: String(reply.code),
    smtpStatus: reply.status,
    expiresAt: null,
  };
}
