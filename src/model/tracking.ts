// How a message is tracked, and what proves a visit: the keys of tokens, and the recipient that a token names.

/** One that signs, or has signed, the tokens of tracked mail. */
export interface TrackingKey {
  /** 0 to 255, in the order in which they were made. */
  number: number;
  /** 32 bytes. */
  secret: Uint8Array;
  createdAt: number;
}

/** What makes each recipient's copy of a message its own. */
export interface MessageTracking {
  /** A pixel is put into its HTML. */
  opens: boolean;
  /** The links of its HTML lead through our host. */
  clicks: boolean;
  /** List-Unsubscribe names our page. */
  unsubscribe: boolean;
}

/** Null where the copies are all the same. */
export function trackingOf(opens: boolean, clicks: boolean, unsubscribe: boolean): MessageTracking | null {
  return opens || clicks || unsubscribe ? { opens, clicks, unsubscribe } : null;
}

/** The recipient that a token names. */
export interface TokenRecipient {
  accountKey: number;
  /** `msg_…` */
  messageId: string;
  /** Row id of the recipient in the store. */
  recipientKey: number;
  /** The address as the sender wrote it. */
  email: string;
  /** The message is of a test key. */
  test: boolean;
}
