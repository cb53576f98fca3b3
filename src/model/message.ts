// A message as it is shown and searched for. A message has no state of its own: its status is what its recipients have
// in common. As it is accepted: acceptance.ts; as it is attempted: queued-recipient.ts.
import type { ContentRef } from "./content.ts";
import type { Patterns } from "./patterns.ts";
import { recipientStates, type RecipientRecord } from "./recipient.ts";
import type { MessageTracking } from "./tracking.ts";

/** The interface that accepted it. */
export const messageSources = ["api", "smtp"] as const;
export type MessageSource = (typeof messageSources)[number];

/** `partially_delivered`: all recipients are final and differ; `processing`: some are not final, and they differ. */
export const messageStatuses = [...recipientStates, "partially_delivered", "processing"] as const;
export type MessageStatus = (typeof messageStatuses)[number];

export interface MessageRecord {
  key: number;
  id: string;
  accountKey: number;
  test: boolean;
  from: string;
  fromName: string | null;
  subject: string;
  messageIdHeader: string;
  tags: string[];
  metadata: Record<string, string>;
  ipPool: string;
  source: MessageSource;
  sizeBytes: number;
  createdAt: number;
  sendAt: number | null;
  recipients: RecipientRecord[];
  /** null once retention has removed it. */
  content: ContentRef | null;
  signingDomain: string | null;
  headerLength: number;
  bodyHash: Uint8Array;
  tracking: MessageTracking | null;
  /** The id of the message that it sends again. */
  resendOf: string | null;
}

export interface MessageFilter extends Patterns {
  status?: MessageStatus;
  from?: string;
  to?: string; // canonical
  toDomain?: string;
  tag?: string;
  subject?: string; // contains
  ipPool?: string;
  source?: MessageSource;
  createdAfter?: number;
  createdBefore?: number;
  /** With its angle brackets. */
  messageIdHeader?: string;
  /** The receiver's queue id, as a part of a reply. */
  remoteId?: string;
}
