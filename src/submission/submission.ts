// What both interfaces share: what REST and SMTP accept passes the same checks and ends in
// one transaction.
import type { Address } from "../mail/address.ts";
import type { Account } from "../model/account.ts";
import type { Quota } from "../model/limits.ts";
import type { MessageRecord } from "../model/message.ts";
import type { AcceptedState, RecipientType } from "../model/recipient.ts";
import type { Refusal } from "../errors.ts";

export interface Sender {
  account: Account;
  test: boolean;
  /** Integer key of the API key, null for SMTP and the operator. */
  apiKey: number | null;
  /** What it may send in a day (access/quotas.ts). */
  quotas: Quota[];
}

/** How a message came in, for its Received field (RFC 5321 §4.4). */
export interface Arrival {
  ip: string;
  helo: string | null;
  /** `HTTP`, `ESMTPSA`, `ESMTPA`, … (RFC 3848). */
  protocol: string;
}

/** What an accepted send is answered, by REST. */
export interface SendAnswer {
  id: string;
  status: AcceptedState;
  created_at: string;
  send_at: string | null;
  recipients: { email: string; type: RecipientType }[];
  message_id_header: string;
}

export interface Acceptance {
  status: number;
  /** JSON text of the answer. */
  body: string;
  /** `msg_…`; null for a replayed answer. */
  id: string | null;
  replayed: boolean;
}

export interface Submission {
  /** Throws Refusal (with every problem listed) or StoreUnavailable. */
  send(
    sender: Sender,
    request: unknown,
    arrival: Arrival,
    idempotency: { key: string; fingerprint: Uint8Array } | null,
  ): Promise<Acceptance>;
  /** Validates each as `send` does; the valid ones are accepted in one transaction. Throws StoreUnavailable, or the Refusal that stands against all of them. */
  sendBatch(
    sender: Sender,
    requests: unknown[],
    arrival: Arrival,
    idempotency: { key: string; fingerprint: Uint8Array } | null,
  ): Promise<Pick<Acceptance, "status" | "body" | "replayed">>;
  /**
   * Sends the stored content of a message again, as a new message with ids and a date of its own: to those of its
   * recipients that `to` names, or to all. Throws Refusal (conflict where the content is gone), StoreUnavailable.
   */
  resend(
    sender: Sender,
    message: MessageRecord,
    to: readonly string[] | null,
    arrival: Arrival,
    idempotency: { key: string; fingerprint: Uint8Array } | null,
  ): Promise<Acceptance>;
  /** Whether `send` would take it now; nothing is kept. Throws Refusal. */
  check(sender: Sender, request: unknown, arrival: Arrival): Promise<void>;
  /** What an SMTP RCPT would meet: null when the recipient may be named. */
  refuseRecipient(sender: Sender, address: Address): Promise<Refusal | null>;
  /** Streams one mail in; resolves after the commit. Throws Refusal, StoreUnavailable, or whatever `data` throws; keeps nothing then. */
  relay(
    sender: Sender,
    envelope: { mailFrom: string; rcptTo: Address[]; smtpUtf8: boolean },
    data: AsyncIterable<Buffer>,
    arrival: Arrival,
  ): Promise<{ id: string }>;
}
