// The send request: shape and content of every field of POST /v1/messages, each problem
// collected so that a client hears of all at once. What needs the store (verification, suppression) is checks.ts's.
import type { z } from "zod";
import type { ErrorCode, Problem } from "../errors.ts";
import type { Mailbox } from "../mail/address.ts";
import {
  listed,
  mailboxOf,
  readAttachments,
  readBodies,
  readHeaders,
  readMetadata,
  readRecipients,
  readSendAt,
  readSubject,
  readTags,
  refuseTracking,
} from "./fields.ts";
import { messageFields, type FieldName, type MessageRequest } from "./shape.ts";

/** `request` holds what was sound (`from` null where it was not); it may be sent only where `problems` is empty. */
export interface ReadRequest {
  request: Omit<MessageRequest, "from"> & { from: Mailbox | null };
  problems: Problem[];
}

/** The order in which problems are told; the first one's code is the answer's. */
const order: readonly FieldName[] = [
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
];

/** Reads a parsed JSON object. `now`: milliseconds since 1970. */
export function readRequest(json: Record<string, unknown>, now: number): ReadRequest {
  const problems: Problem[] = [];
  const add = (field: string, issue: string, code: ErrorCode = "validation_failed"): void =>
    void problems.push({ field, code, issue });
  /** The field's value where it is there and of the right shape. */
  const take = <F extends FieldName>(field: F): z.infer<(typeof messageFields)[F]> | undefined => {
    if (!Object.hasOwn(json, field)) return undefined;
    const read = messageFields[field].safeParse(json[field]);
    if (read.success) return read.data as z.infer<(typeof messageFields)[F]>;
    for (const issue of read.error.issues) add(pathOf(field, issue.path), issue.message);
    return undefined;
  };
  const need = (field: FieldName, issue: string): void => {
    if (!Object.hasOwn(json, field)) add(field, issue);
  };

  need("from", "is required: the sender's address");
  need("to", "is required: at least one recipient");
  need("subject", "is required; it may be empty");
  const from = take("from");
  const tracking = take("tracking");
  refuseTracking(
    {
      track_opens: take("track_opens"),
      track_clicks: take("track_clicks"),
      "tracking.opens": tracking?.opens,
      "tracking.clicks": tracking?.clicks,
    },
    add,
  );
  if (Object.hasOwn(json, "unsubscribe"))
    add("unsubscribe", "is not available yet: set List-Unsubscribe in headers instead");
  for (const name of Object.keys(json))
    if (!Object.hasOwn(messageFields, name)) add(name, "is not a field of a message");

  const bodies = readBodies(take("html"), take("text"), add);
  if (!Object.hasOwn(json, "html") && !Object.hasOwn(json, "text"))
    add("html", "one of html and text is required");
  const request: ReadRequest["request"] = {
    from: from === undefined ? null : mailboxOf(from, "from", add),
    recipients: readRecipients({ to: take("to"), cc: take("cc"), bcc: take("bcc") }, add),
    replyTo: listed("reply_to", take("reply_to")).flatMap(
      ([field, value]) => mailboxOf(value, field, add) ?? [],
    ),
    subject: readSubject(take("subject") ?? "", add),
    ...bodies,
    autoText: take("auto_text") ?? true,
    headers: readHeaders(take("headers") ?? {}, add),
    attachments: readAttachments(take("attachments") ?? [], add),
    ipPool: take("ip_pool") ?? null,
    tags: readTags(take("tags") ?? [], add),
    metadata: readMetadata(take("metadata") ?? {}, add),
    sendAt: readSendAt(take("send_at"), now, add),
  };
  return { request, problems };
}

/** In the order in which problems are told, and within a field as they were found. */
export function inFieldOrder(problems: Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => {
    const at = (order as readonly string[]).indexOf(field.split(/[.[]/, 1)[0] ?? "");
    return at === -1 ? order.length : at;
  };
  return problems.toSorted((a, b) => rank(a) - rank(b));
}

/** `to[0].email` from a field and zod's path within it. */
function pathOf(field: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${String(key)}`),
    field,
  );
}
