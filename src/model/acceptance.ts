// A message as it is accepted, alone or in a batch, and what the store answers: accepted, replayed, or refused with
// nothing kept. The checks before it: submission/.
import type { AccountStatus } from "./account.ts";
import type { PutContent } from "./content.ts";
import type { IdempotencyRecord, Replayed } from "./idempotency.ts";
import type { Quota, QueueShare } from "./limits.ts";
import type { MessageSource } from "./message.ts";
import type { Job, QueuedMessage } from "./queued-recipient.ts";
import type { NewRecipient } from "./recipient.ts";
import type { Suppression } from "./suppression.ts";

export interface NewMessage {
  message: Omit<QueuedMessage, "key" | "content"> & {
    fromName: string | null;
    source: MessageSource;
    apiKey: number | null;
    /** The id of the message that it sends again. */
    resendOf?: string;
  };
  content: PutContent;
  createdAt: number;
  /** null: at once. */
  sendAt: number | null;
  recipients: NewRecipient[];
  idempotency: IdempotencyRecord | null;
  /** Refuse with `over_quota` what would pass one of these; of a batch, all of it. */
  quotas: Quota[];
  /** Refuse with `queue_full` when this many recipients are unsent; 0: no limit. */
  maxQueue: number;
  /**
   * Refuse with `share_full` when the account has this many recipients, or bytes of their content, unsent, where there
   * are other accounts. null: the account is bound by no share.
   */
  share: QueueShare | null;
}

/** The account was paused, suspended or deleted between the first look at it and the commit. */
export interface NotSending {
  kind: "not_sending";
  account: string;
  status: AccountStatus;
  pausedAt: number | null;
  pauseReason: string | null;
}

export interface ShareFull {
  kind: "share_full";
  of: keyof QueueShare;
  most: number;
}

/** Why nothing of a message was kept, where a batch may say it of one message among others. */
export type MessageRefusal =
  { kind: "suppressed"; entries: Suppression[] } | { kind: "queue_full" } | ShareFull | NotSending;

export interface QuotaSpent {
  kind: "over_quota";
  quota: Quota;
}

export type AcceptResult =
  | { kind: "accepted"; jobs: Job[] /* those inserted leased, in the order of `recipients` */ }
  | Replayed
  | MessageRefusal
  | QuotaSpent;

/** `refused`: nothing was kept; what stood against each message, null where nothing did. */
export type BatchAcceptResult =
  | { kind: "accepted"; jobs: Job[][] /* of each message, those inserted leased */ }
  | { kind: "refused"; refusals: (MessageRefusal | null)[] }
  | Replayed
  | QuotaSpent;
