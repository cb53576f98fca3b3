// From what happened to an Outcome: the reply's first digit says temporary or permanent (but for a 552 to RCPT for too
// many recipients), classify.ts the cause;
// failures without a reply get codes of our own and a text that starts `[local]` (RFC 3463 §3.4, §3.5, §3.7).
// A reply about our host or session is never taken for one about the recipient (RFC 5321 §3.1, §4.2.4).
import type { Classification } from "../model/classification.ts";
import { classifyReply, isTooManyRecipients } from "../mail/classify.ts";
import { namedDelayMs } from "../mail/named-delay.ts";
import { bounceCategories } from "../model/classification.ts";
import type { AttemptTrace, Outcome, OutcomeReply } from "../mail/outcome.ts";
import type { Reply } from "../mail/reply.ts";
import type { ConnectionFailure } from "./channel.ts";

/** What a reply was the answer to, as far as it matters for what may follow from it. */
export type Subject =
  /** Our host: greeting, EHLO, STARTTLS, AUTH. */
  | "session"
  /** MAIL FROM. */
  | "sender"
  /** RCPT. */
  | "recipient"
  /** DATA, the message and its dot. */
  | "message";

/** A failure that no server put into words. */
export interface LocalFailure {
  code: number;
  status: string;
  classification: Classification;
}

export const local = {
  noDomain: { code: 550, status: "5.1.2", classification: "invalid_domain" },
  nullMx: { code: 556, status: "5.1.10", classification: "invalid_domain" },
  noHost: { code: 550, status: "5.4.4", classification: "routing_error" },
  forbiddenHost: { code: 550, status: "5.4.6", classification: "routing_error" },
  dnsFailed: { code: 451, status: "4.4.3", classification: "dns_failure" },
  notAllHosts: { code: 451, status: "4.4.4", classification: "routing_error" },
  noConnection: { code: 421, status: "4.4.1", classification: "connection_failed" },
  silence: { code: 421, status: "4.4.2", classification: "connection_failed" },
  notSmtp: { code: 451, status: "4.5.0", classification: "protocol_error" },
  noTls: { code: 451, status: "4.7.5", classification: "tls_failure" },
  noLogin: { code: 451, status: "4.7.0", classification: "relay_denied" },
  leaseLost: { code: 451, status: "4.3.0", classification: "unclassified" },
  tooLarge: { code: 552, status: "5.3.4", classification: "message_too_large" },
  noEightBit: { code: 550, status: "5.6.3", classification: "receiver_error" },
  noSmtpUtf8: { code: 550, status: "5.6.7", classification: "receiver_error" },
} as const satisfies Record<string, LocalFailure>;

/** An outcome that no server decided: deferred on 4yz, bounced on 5yz. */
export function localOutcome(failure: LocalFailure, why: string, trace: AttemptTrace): Outcome {
  const { code, status, classification } = failure;
  const reply: OutcomeReply = { code, status, text: `[local] ${why}`.slice(0, 2000).toWellFormed() };
  return code >= 500
    ? { kind: "bounced", source: "local", reply, classification, trace }
    : { kind: "deferred", reply, classification, retryAfterMs: null, trace };
}

/** What a server's own words came to. */
export function replyOutcome(reply: Reply, subject: Subject, trace: AttemptTrace): Outcome {
  const { code, status, text } = reply;
  const shown: OutcomeReply = { code, status, text };
  if (code < 300) return { kind: "delivered", reply: shown, trace };
  const classification = causeOf(reply, subject);
  const temporary = subject === "recipient" && isTooManyRecipients(reply);
  return code >= 500 && subject !== "session" && !temporary
    ? { kind: "bounced", source: "smtp", reply: shown, classification, trace }
    : { kind: "deferred", reply: shown, classification, retryAfterMs: namedDelayMs(text), trace };
}

function causeOf(reply: Reply, subject: Subject): Classification {
  const cause = classifyReply(reply);
  if (subject === "recipient" || subject === "message" || bounceCategories[cause] !== "recipient")
    return cause;
  return subject === "sender" ? "invalid_sender" : "receiver_error";
}

/** The failure that a broken connection is, by how far the session had come. */
export function brokenAs(broken: ConnectionFailure, greeted: boolean): LocalFailure {
  switch (broken.broken) {
    case "connect":
      return local.noConnection;
    case "tls":
      return local.noTls;
    case "protocol":
      return local.notSmtp;
    case "timeout":
    case "closed":
      return greeted ? local.silence : local.noConnection;
  }
}
