// Recognizes automatic replies (RFC 3834: vacation, challenge, receipt), which are ignored. Used only for a mail without
// a machine-readable report, since reports may also have `Auto-Submitted: auto-replied` (Postfix and Exim set it).
import { fieldOf, fieldText, type MimeField } from "./mime.ts";

/** Fields that only automatic responders set. */
const marks: readonly (readonly [string, RegExp])[] = [
  ["auto-submitted", /^auto-(?:replied|notified)/i],
  ["precedence", /^auto_?reply/i],
  ["x-autoreply", /./],
  ["x-autorespond", /./],
  ["x-autoresponder", /./],
  ["x-auto-reply", /./],
  ["x-auto-reply-from", /./],
  ["x-mail-autoreply", /./],
  ["x-ms-exchange-inbox-rules-loop", /./],
  ["x-apple-action", /vacation/i],
  ["x-cron-env", /./],
  ["x-challenge-message", /./],
  ["x-tmda-fingerprint", /./],
];
const subjects =
  /^(?:(?:re|aw|fwd?)\s*:\s*)*(?:automatic reply|auto[- ]?(?:reply|response|responder|antwort)|out of (?:the )?office|autoreply|abwesen|vacation|away from|on (?:leave|vacation|holiday)|réponse automatique|risposta automatica|respuesta automática|automatische antwort|i(?:'| a)m (?:away|out)|please confirm your (?:message|e?mail)|challenge|message delivery pending your confirmation)/i;
const receipt = /^(?:read|gelesen|lu|not read|deleted)\s*:/i;

/** Why the mail is an automatic reply; null if nothing indicates it. */
export function autoReplyMark(fields: readonly MimeField[]): string | null {
  const mark = marks.find(([name, value]) => value.test(fieldOf(fields, name)));
  if (mark) return mark[0];
  const subject = fieldText(fields, "subject");
  return subjects.test(subject) || receipt.test(subject) ? "subject" : null;
}
