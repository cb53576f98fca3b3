// The mailboxes to which bounces, complaints, unsubscribes and mail to the operator are addressed, and the dependencies of feedback.
import type { Notices } from "../notifications/notices.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { MessageTokens } from "../mail/message-token.ts";
import type { Notice } from "../mail/notice.ts";
import type { ReturnContext, Returned } from "../mail/returned.ts";
import type { Store } from "../store/store.ts";
import type { Unsubscribes } from "../tracking/unsubscribes.ts";

/** Where feedback loops send complaints; `fbl+yahoo@…` names the loop. */
export function complaintsAddress(hostname: string): string {
  return `fbl@${hostname.toLowerCase()}`;
}

export type Mailbox =
  | { kind: "return_path"; messageKey: number; recipientKey: number }
  | { kind: "unsubscribe"; messageKey: number; recipientKey: number }
  | { kind: "complaints"; source: string | null }
  | { kind: "operator"; name: string };

/**
 * Reads a mail that anybody may have sent. What goes beyond the reader's limits is "nothing" (an Notice: as
 * little as the limits allow). A rejection means that it could not be parsed now; the sender gets a temporary failure.
 */
export interface MailReaders {
  readReturned(mail: Uint8Array, came: ReturnContext): Promise<Returned>;
  readNotice(mail: Uint8Array): Promise<Notice>;
}

export interface FeedbackDeps extends MailReaders {
  store: Pick<Store, "sentMessage" | "settleReports" | "reactingRecipient">;
  recorder: Pick<Recorder, "reported" | "complained">;
  /** Signs return paths and the addresses to unsubscribe at, 32 bytes. */
  verpSecret: Uint8Array;
  tokens: Pick<MessageTokens, "read">;
  unsubscribes: Pick<Unsubscribes, "ofRecipient">;
  /** Proves who sends a complaint. */
  resolver: Pick<Resolver, "txt" | "ptr" | "a" | "aaaa">;
  config: Pick<Config, "hostname" | "operations" | "feedback">;
  notices: Pick<Notices, "notify">;
  clock: Clock;
  log: Log;
}
