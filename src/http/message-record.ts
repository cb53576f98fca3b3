// A message as the API shows it: the store's record in the door's names and times. A message has no state
// of its own: its status is what its recipients have in common.
import type { z } from "zod";
import { isoTime, isoTimeOrNull } from "../clock.ts";
import type { AttemptView } from "../model/attempt.ts";
import type { MessageRecord } from "../model/message.ts";
import { finalStates, type RecipientRecord } from "../model/recipient.ts";
import type { attemptShape, messageShape, recipientShape } from "./shapes/messages.ts";

type Message = z.input<typeof messageShape>;

/** The common state; `partially_delivered` where all are final and differ, else `processing`. */
export function messageStatus(recipients: readonly RecipientRecord[]): Message["status"] {
  const states = new Set(recipients.map((recipient) => recipient.state));
  const [first] = states;
  if (states.size === 1 && first) return first;
  return [...states].every((state) => finalStates.includes(state)) ? "partially_delivered" : "processing";
}

/** When what the record shows last changed: the last write to one of its recipients, or that the time of one has come. */
export function lastChangeOf({ createdAt, recipients }: MessageRecord, now: number): number {
  return recipients.reduce((latest, { updatedAt, nextAttemptAt }) => {
    const due = nextAttemptAt !== null && nextAttemptAt <= now ? nextAttemptAt : 0;
    return Math.max(latest, updatedAt, due);
  }, createdAt);
}

export function messageBody(message: MessageRecord): Message {
  const { recipients } = message;
  return {
    id: message.id,
    status: messageStatus(recipients),
    from: message.from,
    from_name: message.fromName,
    subject: message.subject,
    message_id_header: message.messageIdHeader,
    tags: message.tags,
    metadata: message.metadata,
    ip_pool: message.ipPool,
    source: message.source,
    test: message.test,
    size_bytes: message.sizeBytes,
    created_at: isoTime(message.createdAt),
    send_at: isoTimeOrNull(message.sendAt),
    updated_at: isoTime(
      recipients.reduce((latest, { updatedAt }) => Math.max(latest, updatedAt), message.createdAt),
    ),
    recipients: recipients.map(recipientBody),
  };
}

function recipientBody(recipient: RecipientRecord): z.input<typeof recipientShape> {
  return {
    email: recipient.to,
    type: recipient.type,
    status: recipient.state,
    attempts: recipient.attempts,
    last_attempt_at: isoTimeOrNull(recipient.lastAttemptAt),
    next_attempt_at: isoTimeOrNull(recipient.nextAttemptAt),
    smtp_code: codeText(recipient.smtpCode),
    smtp_status: recipient.smtpStatus,
    smtp_response: recipient.smtpResponse,
    receiving_mta: recipient.receivingMta,
    sending_ip: recipient.sendingIp,
    tls: recipient.tls,
    updated_at: isoTime(recipient.updatedAt),
    opened_at: null,
    open_count: 0,
    clicked_at: null,
    click_count: 0,
    complained_at: isoTimeOrNull(recipient.complainedAt),
    unsubscribed_at: null,
  };
}

export function attemptBody(attempt: AttemptView): z.input<typeof attemptShape> {
  return {
    id: attempt.id,
    recipient: attempt.recipient,
    attempt: attempt.attempt,
    started_at: isoTime(attempt.startedAt),
    ended_at: isoTime(attempt.endedAt),
    sending_ip: attempt.sendingIp,
    mx: attempt.mx,
    host: attempt.host,
    address: attempt.address,
    tls: attempt.tls,
    outcome: attempt.outcome,
    ambiguous: attempt.ambiguous,
    smtp_code: codeText(attempt.smtpCode),
    smtp_status: attempt.smtpStatus,
    smtp_response: attempt.smtpResponse,
    dialogue: attempt.dialogue,
    next_attempt_at: isoTimeOrNull(attempt.nextAttemptAt),
    decided_by: attempt.decidedBy,
  };
}

/** Reply codes are strings of three digits everywhere at the doors, as in the events. */
function codeText(code: number | null): string | null {
  return code === null ? null : String(code);
}
