// The calls of tracking: the keys of its tokens, and what recipients did with their mail.
import type { NewUnsubscribe, NewVisit, ReactingRecipient } from "../../model/reaction.ts";
import type { TrackingKey } from "../../model/tracking.ts";

export interface TrackingStore {
  /** Every key that there was, the oldest first: none is ever removed, so that old links go on working. */
  trackingKeys(): Promise<TrackingKey[]>;
  /** Makes the key of the next number; null: all numbers (0 to 255) are used. */
  addTrackingKey(at: number): Promise<TrackingKey | null>;
  /** The recipient that a token or an unsubscribe address names; null: it is gone. */
  reactingRecipient(
    message: { key: number } | { id: string },
    recipientKey: number,
  ): Promise<ReactingRecipient | null>;
  /** Opens and clicks of one account with their events, in one transaction. Of a recipient that is gone nothing is written. */
  recordVisits(visits: NewVisit[]): Promise<void>;
  /** The suppression, and the event where it is the recipient's first, in one transaction. */
  recordUnsubscribe(unsubscribe: NewUnsubscribe): Promise<"recorded" | "already">;
}
