// The calls that accept a message, show it and cancel it, and those for its content. A message and its idempotency
// record are one transaction; content is on disk before a message names it.
import type { AcceptResult, BatchAcceptResult, NewMessage } from "../../model/acceptance.ts";
import type { AttemptView } from "../../model/attempt.ts";
import type { ContentRef, OpenedContent, PutContent } from "../../model/content.ts";
import type { BatchAnswer } from "../../model/idempotency.ts";
import type { Quota } from "../../model/limits.ts";
import type { MessageFilter, MessageRecord } from "../../model/message.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface MessageStore {
  /** Up to 64 KB stay in memory for the commit that names them; larger content is on disk before this resolves. */
  putContent(bytes: AsyncIterable<Uint8Array>): Promise<PutContent>;
  /** Drops content that no message names. */
  dropContent(content: PutContent): Promise<void>;
  /** The bytes from `offset` on, in chunks. Throws ContentGone where retention removed it. */
  openContent(ref: ContentRef, offset?: number): AsyncIterable<Buffer>;
  /** For a thread that reads it by itself, until `close`, to be called once nobody reads any more. Throws ContentGone. */
  openContentForThread(ref: ContentRef): Promise<{ content: OpenedContent; close(): Promise<void> }>;
  /** The first of the quotas that is used up on the day of `at`; null: none is. */
  spentQuota(quotas: Quota[], at: number): Promise<Quota | null>;
  acceptMessage(message: NewMessage): Promise<AcceptResult>;
  /** All of the messages (their own idempotency records are null) and the one answer, in one transaction, or nothing. */
  acceptMessages(messages: NewMessage[], answer: BatchAnswer | null): Promise<BatchAcceptResult>;
  /** What a stored key would answer: looked up before the body is checked. */
  idempotent(
    accountKey: number,
    test: boolean,
    key: string,
    notBefore: number,
  ): Promise<{ fingerprint: Uint8Array; status: number; body: string } | null>;
  message(accountKey: number, id: string): Promise<MessageRecord | null>;
  listMessages(accountKey: number, filter: MessageFilter, page: PageRequest): Promise<Page<MessageRecord>>;
  attempts(accountKey: number, messageId: string): Promise<AttemptView[]>;
  /** Cancels every recipient that is scheduled, queued, deferred or held, and not leased; `canceled` is how many, `message` as it is then. null: no such message. */
  cancelMessage(
    accountKey: number,
    id: string,
    at: number,
  ): Promise<{ canceled: number; message: MessageRecord } | null>;
}
