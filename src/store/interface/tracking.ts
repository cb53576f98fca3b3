// The calls of tracking: the keys of its tokens, and what recipients did with their mail.
import type { TrackingKey } from "../../model/tracking.ts";

export interface TrackingStore {
  /** Every key that there was, the oldest first: none is ever removed, so that old links go on working. */
  trackingKeys(): Promise<TrackingKey[]>;
  /** Makes the key of the next number; null: all numbers (0 to 255) are used. */
  addTrackingKey(at: number): Promise<TrackingKey | null>;
}
