// One recipient of a message (RFC 5321 §3.3: the envelope decides, never the headers): as it is accepted, and as it is
// shown with what became of it.
import type { TlsSummary } from "./tls.ts";

export const recipientTypes = ["to", "cc", "bcc"] as const;
export type RecipientType = (typeof recipientTypes)[number];

export const recipientStates = [
  "scheduled",
  "queued",
  "sending",
  "delivered",
  "deferred",
  "bounced",
  "canceled",
] as const;
export type RecipientState = (typeof recipientStates)[number];

/** What a recipient can be right after acceptance. */
export const acceptedStates = ["queued", "scheduled"] as const satisfies RecipientState[];
export type AcceptedState = (typeof acceptedStates)[number];

/** Nothing follows them. */
export const finalStates: readonly RecipientState[] = ["delivered", "bounced", "canceled"];

export interface NewRecipient {
  type: RecipientType;
  /** As the sender wrote it. */
  to: string;
  rcptTo: string;
  /** Canonical form that the suppression list compares: whole address in lower case, domain in A-label form. */
  canonical: string;
  domain: string;
  queueName: string;
  /** The boot that it is leased to as it is inserted (its runner has a slot for it); null: it waits until `dueAt`. */
  leaseOwner: string | null;
}

export interface RecipientRecord {
  type: RecipientType;
  to: string;
  state: RecipientState;
  attempts: number;
  lastAttemptAt: number | null;
  nextAttemptAt: number | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  receivingMta: string | null;
  sendingIp: string | null;
  tls: TlsSummary | null;
  updatedAt: number;
  complainedAt: number | null;
  /** The first open, and how many there were, machines left out; the same of clicks. */
  openedAt: number | null;
  openCount: number;
  clickedAt: number | null;
  clickCount: number;
  unsubscribedAt: number | null;
}
