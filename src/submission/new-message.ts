// The row of a new message: of what came by REST and was composed, and of what came by SMTP and is passed on.
import { returnPathInUse } from "../domains/records.ts";
import type { Composed } from "../mail/compose.ts";
import { has8Bit } from "../mail/header-convert.ts";
import type { NewMessage } from "../model/acceptance.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { ReadMail } from "./incoming.ts";
import type { FittedContent } from "./rewrap.ts";
import type { AssignedFields } from "./render.ts";
import type { MessageRequest } from "./shape.ts";
import type { Sender } from "./submission.ts";
import { trackingFor } from "./tracking.ts";

export type Rendered = Composed & { request: MessageRequest };

/** A request that nothing stands against. */
export interface Validated {
  rendered: Rendered;
  made: AssignedFields;
  domain: SenderDomain;
  pool: string;
}

export function messageOf(
  { rendered, made, domain, pool }: Validated,
  sender: Sender,
): NewMessage["message"] {
  const { request, headerLength, bodyHash, smtpUtf8 } = rendered;
  return {
    id: made.id,
    accountKey: sender.account.key,
    test: sender.test,
    from: request.from.address.email,
    fromName: request.from.name,
    signingDomain: domain.name,
    returnPathDomain: returnPathInUse(domain),
    subject: request.subject,
    tagsJson: JSON.stringify(request.tags),
    metadataJson: JSON.stringify(request.metadata),
    messageIdHeader: made.messageId,
    ipPool: pool,
    headerLength,
    bodyHash,
    // Bodies are encoded: only a header can have an octet above 127.
    eightBit: smtpUtf8,
    smtpUtf8,
    tracking: trackingFor(domain, request.tracking),
    queuedAt: request.sendAt ?? made.now,
    source: "api",
    apiKey: sender.apiKey,
  };
}

export function relayedMessageOf(
  { header, author, options, domain, parts }: ReadMail,
  fitted: FittedContent,
  made: AssignedFields,
  sender: Sender,
): NewMessage["message"] {
  return {
    id: made.id,
    accountKey: sender.account.key,
    test: sender.test,
    from: author.address.email,
    fromName: author.name && recorded(author.name),
    signingDomain: domain.name,
    returnPathDomain: returnPathInUse(domain),
    subject: recorded(header.subject),
    tagsJson: JSON.stringify(options.tags),
    metadataJson: JSON.stringify(options.metadata),
    messageIdHeader: header.messageId,
    ipPool: options.ipPool,
    headerLength: fitted.headerLength,
    bodyHash: fitted.summary.bodyHash,
    eightBit: fitted.summary.eightBit,
    smtpUtf8: has8Bit(header.section) || parts.smtpUtf8,
    tracking: trackingFor(domain, options.tracking),
    queuedAt: options.sendAt ?? made.now,
    source: "smtp",
    apiKey: sender.apiKey,
  };
}

const recordedCharacters = 998;

/** A header section of 100 KB can be one long text; the record and every event of the mail show its beginning. */
function recorded(text: string): string {
  return text.slice(0, recordedCharacters);
}
