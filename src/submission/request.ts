// The send request: every field of POST /v1/messages read, each problem collected so that a client
// hears of all at once. What needs the store (verification, suppression) is checks.ts's.
import type { Problem } from "../errors.ts";
import type { Mailbox } from "../mail/address.ts";
import {
  readAttachments,
  readBody,
  readHeaders,
  readMailbox,
  readMetadata,
  readRecipients,
  readReplyTo,
  readSendAt,
  readSubject,
  readTags,
} from "./fields.ts";
import {
  messageFields,
  mostEntries,
  readShape,
  shortName,
  type Add,
  type Field,
  type FieldName,
  type MessageRequest,
  type TrackingRequest,
} from "./shape.ts";
import { readSwitch, readUnsubscribe, refuseSecond } from "./tracking.ts";

/** `request` has what was valid (`from` is null if it was not); it may be sent only where `problems` is empty. */
export interface ReadRequest {
  request: Omit<MessageRequest, "from"> & { from: Mailbox | null };
  problems: Problem[];
}

/** The order in which problems are listed; the response has the code of the first. */
const order: readonly string[] = [
  "from",
  "to",
  "cc",
  "bcc",
  "reply_to",
  "subject",
  "html",
  "text",
  "auto_text",
  "headers",
  "attachments",
  "ip_pool",
  "track_opens",
  "track_clicks",
  "tracking",
  "tags",
  "metadata",
  "send_at",
  "unsubscribe",
] satisfies FieldName[];

/** Reads a parsed JSON object. `now`: milliseconds since 1970. */
export function readRequest(json: Record<string, unknown>, now: number): ReadRequest {
  const problems: Problem[] = [];
  const tell: Add = (field, issue, code = "validation_failed") => void problems.push({ field, code, issue });
  const misshapen = new Set<string>();
  /** The field's value where it is there, without what was of the wrong shape. */
  const take = <F extends FieldName>(field: F): Field<F> | undefined => {
    if (!Object.hasOwn(json, field)) return undefined;
    return readShape(field, json[field], (path, issue) => {
      misshapen.add(path);
      tell(path, issue);
    });
  };
  /** What was of the wrong shape, or stands in an entry that was, has been reported. */
  const add: Add = (field, issue, code) => {
    if (!misshapen.has(field) && !misshapen.has(entryOf(field))) tell(field, issue, code);
  };

  refuseMissing(json, add);
  refuseUnknown(json, add);
  const from = take("from");
  const request: ReadRequest["request"] = {
    from: from === undefined ? null : readMailbox("from", from, add),
    recipients: readRecipients({ to: take("to"), cc: take("cc"), bcc: take("bcc") }, add),
    replyTo: readReplyTo(take("reply_to"), add),
    subject: readSubject(take("subject") ?? "", add),
    html: readBody("html", take("html"), add),
    text: readBody("text", take("text"), add),
    autoText: take("auto_text") ?? true,
    headers: readHeaders(take("headers") ?? {}, add),
    attachments: readAttachments(take("attachments") ?? [], add),
    ipPool: take("ip_pool") ?? null,
    tags: readTags(take("tags") ?? [], add),
    metadata: readMetadata(take("metadata") ?? {}, add),
    sendAt: readSendAt(take("send_at"), now, add),
    tracking: readTracking(take, add),
  };
  const names = request.headers.map(([name]) => name);
  refuseSecond(request.tracking.unsubscribe, names, (name) =>
    add(`headers.${name}`, "may not be set beside unsubscribe, which writes this field"),
  );
  return { request, problems };
}

function refuseMissing(json: object, add: Add): void {
  const has = (field: FieldName): boolean => Object.hasOwn(json, field);
  if (!has("from")) add("from", "is required: the sender's address");
  if (!has("to")) add("to", "is required: at least one recipient");
  if (!has("subject")) add("subject", "is required; it may be empty");
  if (!has("html") && !has("text")) add("html", "one of html and text is required");
}

/** A misspelt `attachements` must not silently lose a file. */
function refuseUnknown(json: object, add: Add): void {
  const unknown = Object.keys(json).filter((name) => !Object.hasOwn(messageFields, name));
  for (const name of unknown.slice(0, mostEntries)) add(shortName(name), "is not a field of a message");
  if (unknown.length > mostEntries)
    add("", `there are ${unknown.length - mostEntries} more fields that a message does not have`);
}

function readTracking(
  take: <F extends FieldName>(field: F) => Field<F> | undefined,
  add: Add,
): TrackingRequest {
  const { opens, clicks } = take("tracking") ?? {};
  return {
    opens: readSwitch(["track_opens", "tracking.opens"], take("track_opens"), opens, add),
    clicks: readSwitch(["track_clicks", "tracking.clicks"], take("track_clicks"), clicks, add),
    unsubscribe: readUnsubscribe(take("unsubscribe"), add),
  };
}

/** `attachments[1]` of `attachments[1].filename`. */
function entryOf(field: string): string {
  return /^\w+\[\d+\]/.exec(field)?.[0] ?? field;
}

/** In the order in which problems are listed, and within a field as they were found. */
export function inFieldOrder(problems: Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => {
    const at = order.indexOf(field.split(/[.[]/, 1)[0] ?? "");
    return at === -1 ? order.length : at;
  };
  return problems.toSorted((a, b) => rank(a) - rank(b));
}
