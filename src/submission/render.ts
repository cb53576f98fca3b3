// A sound request as the bytes that are stored and sent: composed, with our Received field on top
// (RFC 5321 §4.4; a REST client's address is not published). The composing itself is mail/compose.ts's.
import { composeMessage, textFromHtml, type Composed } from "../mail/compose.ts";
import { listUnsubscribe } from "../mail/list-unsubscribe.ts";
import { receivedField } from "../mail/trace.ts";
import type { PutContent } from "../model/content.ts";
import type { Store } from "../store/store.ts";
import type { MessageRequest } from "./shape.ts";

/** What the service gives a message. */
export interface AssignedFields {
  id: string;
  /** Proves in a report that it speaks of this message (mail/message-token.ts). */
  token: string;
  /** With its angle brackets. */
  messageId: string;
  hostname: string;
  protocol: string;
  /** Milliseconds since 1970-01-01 UTC. */
  now: number;
}

/** Whether its text is made from its html. */
export function makesText({
  text,
  html,
  autoText,
}: Pick<MessageRequest, "text" | "html" | "autoText">): boolean {
  return text === null && html !== null && autoText;
}

export function render(request: MessageRequest, made: AssignedFields): Composed {
  const { from, replyTo, recipients, subject, html, headers, attachments } = request;
  const named = (type: "to" | "cc") =>
    recipients.filter((recipient) => recipient.type === type).map(({ mailbox }) => mailbox);
  const composed = composeMessage({
    from,
    replyTo,
    to: named("to"),
    cc: named("cc"),
    subject,
    text: html !== null && makesText(request) ? textFromHtml(html) : request.text,
    html,
    headers: [...headers, ...ownUnsubscribe(request)],
    attachments,
    messageId: made.messageId,
    date: made.now,
    boundarySeed: made.id,
  });
  const received = Buffer.from(
    receivedField({ from: null, by: made.hostname, protocol: made.protocol, id: made.id, date: made.now }),
  );
  return {
    ...composed,
    chunks: [received, ...composed.chunks],
    headerLength: composed.headerLength + received.length,
    sizeBytes: composed.sizeBytes + received.length,
  };
}

/** The page of a sender is the same for each recipient. */
function ownUnsubscribe({ tracking: { unsubscribe } }: MessageRequest): [string, string][] {
  return unsubscribe === null || unsubscribe === "hosted" ? [] : listUnsubscribe(unsubscribe);
}

/** The message cannot be smaller than this, whatever else it has: no encoding makes a text shorter. */
export function leastBytes({
  attachments,
  html,
  text,
}: Pick<MessageRequest, "attachments" | "html" | "text">): number {
  const files = attachments.reduce((sum, { bytes, contentType }) => {
    // A message within a message is not encoded (RFC 2046 §5.2.1).
    const encoded = contentType.startsWith("message/") ? bytes.length : Math.ceil(bytes.length / 3) * 4;
    return sum + encoded;
  }, 0);
  return files + (html?.length ?? 0) + (text?.length ?? 0);
}

/** Larger messages go through a spool file. */
const inlineBytes = 65_536;

export async function putChunks(
  store: Pick<Store, "putContent">,
  { chunks, sizeBytes }: Composed,
): Promise<PutContent> {
  if (sizeBytes <= inlineBytes) return { kind: "inline", bytes: Buffer.concat(chunks, sizeBytes) };
  return store.putContent(
    (async function* () {
      yield* chunks;
    })(),
  );
}
