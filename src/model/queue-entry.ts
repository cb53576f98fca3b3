// A recipient in the queue, as the operator sees it: why it is there, and when it is tried next.
import type { NewEvent } from "./event.ts";
import type { Patterns } from "./patterns.ts";

/** Where a recipient is: it waits for its time, it is held (by its account's pause, or by the operator), or an attempt runs. */
export const queueParts = ["waiting", "account_hold", "operator_hold", "sending"] as const;
export type QueuePart = (typeof queueParts)[number];

/** `held`: no attempt is made until it is released. */
export const queueStatuses = ["scheduled", "queued", "deferred", "held", "sending"] as const;
export type QueueStatus = (typeof queueStatuses)[number];

/** Who holds a held recipient: the pause of its account's sending, or the operator. */
export const queueHolders = ["account", "operator"] as const;
export type QueueHolder = (typeof queueHolders)[number];

export interface QueueFilter extends Patterns {
  status?: QueueStatus;
  /** In the form that the suppression list compares. */
  to?: string;
  tag?: string;
  /** The group of MX hosts of the last attempt; `*` as in a pattern. */
  provider?: string;
}

export interface QueueEntry {
  /** Row id of the recipient. */
  key: number;
  /** `msg_…` */
  messageId: string;
  to: string;
  from: string;
  /** Of the recipient, A-label. */
  domain: string;
  ipPool: string;
  /** The group of MX hosts of the last attempt; null before the first. */
  provider: string | null;
  status: QueueStatus;
  heldBy: QueueHolder | null;
  attempts: number;
  /** When the message was accepted or, if later, its send_at. */
  queuedAt: number;
  lastAttemptAt: number | null;
  /** null: it is held, or an attempt runs. */
  nextAttemptAt: number | null;
  sendingIp: string | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
}

/** What recipients in the queue are counted by. `error`: reply code and enhanced status of the last attempt. */
export const queueGroupings = ["domain", "provider", "pool", "ip", "error", "status"] as const;
export type QueueGrouping = (typeof queueGroupings)[number];

export interface QueueGroup {
  /** null: no attempt was made yet. */
  value: string | null;
  recipients: number;
  held: number;
  /** The earliest; null: all are held, or being sent. */
  nextAttemptAt: number | null;
}

/** A scheduled queue, and when the first of its recipients that were changed is due. */
export interface ScheduledQueue {
  queueName: string;
  dueAt: number;
}

/** A recipient that is given up without an attempt. */
export interface FailedRecipient {
  recipientKey: number;
  accountKey: number;
  at: number;
  smtpCode: number;
  smtpStatus: string | null;
  smtpResponse: string;
  event: NewEvent;
}
