// The shape of POST /v1/messages: one zod type a field, from which the API's description derives, the one
// way to read it (each fault at its own path, however large the value), and the request as it is once every field
// is sound. The rules of each field: fields.ts.
import { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import { shapeWords } from "../errors/zod-messages.ts";
import type { Mailbox } from "../mail/address.ts";
import type { ComposeAttachment } from "../mail/compose.ts";
import type { UnsubscribeLinks } from "../mail/list-unsubscribe.ts";
import type { RecipientType } from "../model/recipient.ts";

const partyObject = z.strictObject({ email: z.string(), name: z.string().nullish() });
export const party = z.union([z.string(), partyObject], {
  error: 'expected an address: "a@x", "Name <a@x>" or {email, name}',
});
const parties = z.union([party, z.array(party)], {
  error: "expected an address, {email, name}, or an array of them",
});

/** One zod type a field: the API's description derives from it. */
export const messageFields = {
  from: party,
  to: parties,
  cc: parties,
  bcc: parties,
  reply_to: parties,
  subject: z.string(),
  html: z.string(),
  text: z.string(),
  auto_text: z.boolean(),
  headers: z.record(z.string(), z.string()),
  attachments: z.array(
    z.strictObject({
      filename: z.string(),
      content: z.string(),
      content_type: z.string().optional(),
      content_id: z.string().optional(),
      disposition: z.enum(["attachment", "inline"]).optional(),
    }),
  ),
  ip_pool: z.string(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  send_at: z.string(),
  track_opens: z.boolean(),
  track_clicks: z.boolean(),
  tracking: z.strictObject({ opens: z.boolean().optional(), clicks: z.boolean().optional() }),
  unsubscribe: z.union(
    [z.boolean(), z.strictObject({ url: z.string().optional(), mailto: z.string().optional() })],
    { error: "expected true, or an object with url, mailto or both" },
  ),
} as const;

export type FieldName = keyof typeof messageFields;
const fieldNames = Object.keys(messageFields) as FieldName[];
/** Fields that any string fits, and any list of strings: so is most of what comes, and it needs no second look. */
const takesText = new Set(fieldNames.filter((field) => messageFields[field].safeParse("x").success));
const takesTexts = new Set(fieldNames.filter((field) => messageFields[field].safeParse(["x"]).success));
export type Field<F extends FieldName> = z.infer<(typeof messageFields)[F]>;
export type Party = z.infer<typeof party>;

/** Reports a problem; the code is validation_failed unless it is given. */
export type Add = (field: string, issue: string, code?: ErrorCode) => void;

/** A larger array or object is refused as a whole, since the list of its faults would be unbounded. */
export const mostEntries = 250;
const longestName = 100;

/**
 * The value in the field's shape, every fault reported at its path, such as `to[1].email`. Parts that had one are left out
 * or blank, so that the rules still see the others; undefined where nothing is left to see.
 */
export function readShape<F extends FieldName>(field: F, value: unknown, add: Add): Field<F> | undefined {
  if (typeof value === "string" && takesText.has(field)) return value as Field<F>;
  const keys = isRecord(value) ? Object.keys(value) : [];
  const entries = Array.isArray(value) ? value.length : keys.length;
  if (entries > mostEntries) {
    add(field, `has ${entries} entries, far more than any message may have`);
    return undefined;
  }
  if (takesTexts.has(field) && Array.isArray(value) && value.every((entry) => typeof entry === "string"))
    return value as Field<F>;
  // A key that zod leaves out of a record without a word.
  if (keys.includes("__proto__")) add(`${field}.__proto__`, "is not a name that can be used");
  const read = messageFields[field].safeParse(value, { error: shapeWords });
  if (read.success) return read.data as Field<F>;
  const faults = read.error.issues.flatMap((issue) => faultsOf(issue, []));
  for (const fault of faults) add(pathOf(field, fault.path), fault.issue);
  const rest = messageFields[field].safeParse(withoutFaults(field, value, faults));
  return rest.success ? (rest.data as Field<F>) : undefined;
}

/** What a part must have is blank after its fault was reported. */
const blankEntry = (field: FieldName): unknown =>
  field === "attachments" ? { filename: "", content: "" } : "";
const neededKeys: readonly PropertyKey[] = ["email", "filename", "content"];

function withoutFaults(field: FieldName, value: unknown, faults: Fault[]): unknown {
  const copy = copied(value, 2);
  for (const { path } of faults) {
    const key = path.at(-1);
    const holder = path.slice(0, -1).reduce<unknown>(member, copy);
    if (key === undefined || typeof holder !== "object" || holder === null) return undefined;
    if (Array.isArray(holder)) holder[Number(key)] = blankEntry(field);
    else if (neededKeys.includes(key)) Reflect.set(holder, key, "");
    else Reflect.deleteProperty(holder, key);
  }
  return copy;
}

function copied(value: unknown, depth: number): unknown {
  if (depth === 0) return value;
  if (Array.isArray(value)) return value.map((entry) => copied(entry, depth - 1));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, copied(entry, depth - 1)]));
}

function member(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

/** A JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Fault {
  path: PropertyKey[];
  issue: string;
}

/** Of a union's alternatives, the faults of the one whose parts are wrong are reported, not of one that does not fit as a whole. */
function faultsOf(issue: z.core.$ZodIssue, within: readonly PropertyKey[]): Fault[] {
  const path = [...within, ...issue.path];
  if (issue.code === "unrecognized_keys")
    return issue.keys
      .slice(0, mostEntries)
      .map((key) => ({ path: [...path, key], issue: "is not a known field" }));
  if (issue.code !== "invalid_union") return [{ path, issue: issue.message }];
  const alternatives = issue.errors.map((issues) => issues.flatMap((inner) => faultsOf(inner, path)));
  const nearest = alternatives.find((faults) => faults.every((fault) => fault.path.length > path.length));
  return nearest ?? [{ path, issue: issue.message }];
}

/** `to[0].email` from a field and the path within it. */
function pathOf(field: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${shortName(String(key))}`),
    field,
  );
}

/** A name that the client chose, short enough to be quoted. */
export function shortName(name: string): string {
  return name.length > longestName ? `${name.slice(0, longestName)}…` : name;
}

export interface RecipientRequest {
  type: RecipientType;
  /** `to[0]`: where the client finds it. */
  field: string;
  mailbox: Mailbox;
  /** As the suppression list compares it. */
  canonical: string;
}

/** A switch, and the field that sets it. */
export interface Switch {
  on: boolean;
  field: string;
}

/** `hosted`: the page is ours. */
export type Unsubscribe = "hosted" | UnsubscribeLinks;

export interface TrackingRequest {
  /** null: as the domain has it. */
  opens: Switch | null;
  clicks: Switch | null;
  unsubscribe: Unsubscribe | null;
}

/** The fields, each sound by itself. */
export interface MessageRequest {
  from: Mailbox;
  replyTo: Mailbox[];
  recipients: RecipientRequest[];
  subject: string;
  html: string | null;
  text: string | null;
  autoText: boolean;
  headers: [string, string][];
  attachments: ComposeAttachment[];
  ipPool: string | null;
  tags: string[];
  metadata: Record<string, string>;
  /** Milliseconds since 1970; null: at once. */
  sendAt: number | null;
  tracking: TrackingRequest;
}
