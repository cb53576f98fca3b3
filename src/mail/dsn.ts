// Delivery status notifications (RFC 3464, RFC 6533): groups of fields, one for the message and one for each
// recipient. Delayed, relayed, delivered and expanded change nothing; `failed` is a failure (and `bounced`), and so is an
// Action that RFC 3464 §2.3.3 does not know, of which nothing else is certain. Only a reply gives a cause: the Diagnostic-Code, an
// extension field (§2.4) that contains one, or one that the text for people quotes (bounce-words.ts).
import { parseAddress } from "./address.ts";
import { addressedTo, humanText, wordsIn } from "./bounce-text.ts";
import { markedWords, statementBeside, transcriptReply, withoutOurMessage } from "./bounce-words.ts";
import { saysNothing } from "./classify.ts";
import type { Failure } from "./failure.ts";
import { allParts, fieldOf, readFields, textOf, type MimeField, type MimePart } from "./mime.ts";
import { quotedReply, type QuotedReply } from "./reply-text.ts";

const statusTypes = new Set(["message/delivery-status", "message/global-delivery-status"]);
const maxRecipients = 100;
/** Of one recipient, whose group may name it several times. */
const maxNames = 20;
const longestAddressField = 1_000;
const longestDate = 200;
/** Of one recipient; a reply is at most 2,000 characters of it. */
const longestDiagnosis = 5_000;
const recipientFields = ["final-recipient", "original-recipient", "x-actual-recipient"];
/** Fields that a group must have one of to speak of a recipient. */
const groupMarks = new Set([...recipientFields, "action", "status", "diagnostic-code"]);

/** The failures in the report; null if the mail has no delivery status. */
export function readDeliveryStatus(root: MimePart, subjects: readonly string[] = []): Failure[] | null {
  const parts = allParts(root);
  const machine = parts.filter(({ type }) => statusTypes.has(type)).map((part) => part.body);
  const texts = machine.length > 0 ? machine : parts.map(textOf).filter(looksLikeStatus);
  if (texts.length === 0) return null;
  const all = texts.flatMap(groupsOf);
  // A group without a recipient says nothing where others name one: it would outrank them.
  const naming = all.filter(({ fields }) => fields.some(({ lower }) => recipientFields.includes(lower)));
  const groups = naming.length > 0 ? naming : all;
  if (groups.length === 0) return null;
  const failures: Failure[] = [];
  const words = withoutOurMessage(humanText(root), subjects);
  const heard: Heard = {
    wordsAbout: groups.length === 1 ? () => words.trim() : wordsIn(words),
    own: addressedTo(root),
  };
  for (const group of groups.slice(0, maxRecipients)) {
    const failure = readGroup(group.fields, group.perMessage, heard);
    if (failure !== null) failures.push(failure);
  }
  return failures;
}

/** The fields of a report that some servers put into text, outside of a part of their own. */
function looksLikeStatus(text: string): boolean {
  return /^[ \t]*final-recipient[ \t]*:/im.test(text) && /^[ \t]*(?:action|status)[ \t]*:/im.test(text);
}

/** Recipient groups, each with the per-message fields; blank lines within a group are seen in the wild. */
function groupsOf(text: string): { fields: MimeField[]; perMessage: MimeField[] }[] {
  const perMessage: MimeField[] = [];
  const groups: MimeField[][] = [];
  for (const block of text.split(/\n[ \t]*\n+/)) {
    if (groups.length > maxRecipients) break; // the last one may go on in the next block
    const { fields } = readFields(`${block.replace(/^[\n]+/, "").replace(/^[ \t]+(?=[A-Za-z-]+:)/gm, "")}\n`);
    if (!fields.some(({ lower }) => groupMarks.has(lower))) {
      if (groups.length === 0) perMessage.push(...fields);
      continue;
    }
    let open: MimeField[] = [];
    const last = groups.at(-1);
    // A block without a recipient goes on with the group before it.
    if (last && !fields.some(({ lower }) => recipientFields.includes(lower))) open = last;
    else groups.push(open);
    for (const field of fields) {
      if (field.lower === "final-recipient" && open.some(({ lower }) => lower === "final-recipient")) {
        open = [];
        groups.push(open);
      }
      open.push(field);
    }
  }
  return groups.map((fields) => ({ fields, perMessage }));
}

function readGroup(fields: MimeField[], perMessage: MimeField[], heard: Heard): Failure | null {
  const action = /[a-z][a-z_-]*(?: fail\w*)?/i.exec(fieldOf(fields, "action"))?.[0]?.toLowerCase() ?? "";
  const stated = /([245])\.\d{1,3}\.\d{1,3}/.exec(fieldOf(fields, "status"))?.[0] ?? null;
  if (harmless.test(action)) return null;
  if (stated?.startsWith("2")) return null;
  const recipients = recipientFields
    .flatMap((name) => fields.filter(({ lower }) => lower === name))
    .slice(0, maxNames)
    .map(({ value }) => addressIn(value))
    .filter((address): address is string => address !== null);
  if (action === "" && stated === null && recipients.length === 0) return null;

  // Some write their reason as a comment of the status and give no diagnosis.
  const comment = /\(([^()]+)\)/.exec(fieldOf(fields, "status"))?.[1] ?? "";
  const diagnosis = utf8(fieldOf(fields, "diagnostic-code") || comment);
  const [, kind = "", said = diagnosis] = /^\s*([\w-]+)\s*;\s*([\s\S]*)$/.exec(diagnosis) ?? [];
  const reply = quotedReply(said.slice(0, longestDiagnosis));
  const further =
    !saysNothing(reply.text) && (reply.code !== null || /^smtp$/i.test(kind))
      ? null
      : furtherReply(fields, reply, recipients, heard);
  const code = reply.code ?? further?.code ?? null;
  const ownStatus = reply.status ?? further?.status ?? null;
  const mixed = code !== null && ownStatus !== null && String(code)[0] !== ownStatus[0];
  return {
    recipients: [...new Set(recipients)],
    code,
    status: preciseStatus(stated, reply.status === null ? further : reply),
    text: further !== null && (saysNothing(reply.text) || reply.text === "") ? further.text : reply.text,
    mta: hostIn(fieldOf(fields, "remote-mta")) ?? hostIn(fieldOf(perMessage, "reporting-mta")),
    reportedAt: dateIn(fieldOf(fields, "last-attempt-date")) ?? dateIn(fieldOf(perMessage, "arrival-date")),
    ...(action === "" || failed.test(action) ? {} : { unknownAction: true as const }),
    ...(mixed ? { mixedClasses: true as const } : {}),
  };
}

/** What RFC 3464 §2.3.3 calls no failure, in the spellings that are seen. */
const harmless = /^(?:delay(?:ed)?|relay(?:ed)?|deliver(?:ed)?|expand(?:ed)?)(?![a-z ])/;
/** `failed`, and the other words that say so. */
const failed =
  /^(?:(?:(?:perm(?:anent)?(?:ly)?|delivery|hard)[-_ ]?)?(?:fail(?:ed|ure)?|bounced?)|undeliver(?:ed|able)|(?:not|non)[-_]deliver(?:ed|able|y))(?![a-z])/;

/** What the report has for people. */
interface Heard {
  wordsAbout: (recipients: readonly string[]) => string;
  /** Whom the report was sent to, as its receivers' replies may name him. */
  own: readonly string[];
}

/** Extension fields that quote our message. */
const ofMessage = /recipient|original|subject|message|header|from|sender|\bid$/;
/** RFC 3464 §2.3 has these in each group; every other field is an extension (§2.4). */
const standard =
  /^(?:action|status|diagnostic-code|(?:final|original)-recipient|remote-mta|last-attempt-date|will-retry-until|final-log-id)$/;
/** The field is a reply: before the code stand at most a host, a status and a type, as in `<mx.test #5.0.0 smtp; 550 …>`. */
const holdsReply =
  /^<?\s{0,9}(?:[\w-]{0,60}[.:][\w.:-]{0,200}(?:\[[\w.:]{1,45}\])?:?\s+)?(?:#?[45]\.\d{1,3}\.\d{1,3}\s+)?(?:[\w-]{1,40}\s*;\s*)?[45]\d\d(?:[\s-]|$)/;

/** A reply that stands elsewhere in the report, where the diagnosis names no cause; null: none that does. */
function furtherReply(
  fields: MimeField[],
  { code, text: diagnosis }: QuotedReply,
  recipients: readonly string[],
  { wordsAbout, own }: Heard,
): QuotedReply | null {
  const words = wordsAbout(recipients);
  const extensions = fields
    .filter(({ lower }) => !standard.test(lower) && !ofMessage.test(lower))
    .filter(({ value }) => holdsReply.test(value.trimStart().slice(0, 500)))
    .slice(0, maxNames)
    .map(({ value }) => quotedReply(utf8(unbracketed(value)).slice(0, longestDiagnosis)));
  const quoted = [...extensions, transcriptReply(words, [...recipients, ...own])].filter(
    (one) => one.code !== null && (code === null || String(one.code)[0] === String(code)[0]),
  );
  const [first = null] = quoted;
  const telling = quoted.find(({ text }) => !saysNothing(text));
  if (telling !== undefined) return telling;
  // Without any reply, the report is as good as prose.
  const bare = diagnosis === "" && first === null ? statementBeside(words, recipients) : "";
  const stated = [markedWords(words, [...recipients, ...own]), bare].find(
    (one) => one !== "" && !saysNothing(one),
  );
  if (stated !== undefined)
    return { code: first?.code ?? null, status: first?.status ?? null, adjacent: false, text: stated };
  return code === null ? first : null;
}

function unbracketed(value: string): string {
  return /^\s*<([\s\S]*)>\s*$/.exec(value.slice(0, longestDiagnosis))?.[1] ?? value;
}

const vague = /^\d\.\d\.0$/;

/** The receiver's own status, right behind its code, is better than the reporter's, if it is of the same class. */
function preciseStatus(stated: string | null, reply: QuotedReply | null): string | null {
  const diagnosed = reply?.status ?? null;
  if (stated === null) return diagnosed;
  if (diagnosed === null || diagnosed[0] !== stated[0]) return stated;
  return reply?.adjacent === true || vague.test(stated) ? diagnosed : stated;
}

/** `rfc822; <a@b.test>`, with quotes, encodings and comments that are seen. */
function addressIn(value: string): string | null {
  const text = utf8(value.slice(0, longestAddressField)).replace(/^\s*[\w-]*\s*;\s*/, "");
  const bracketed = /<([^<>\s]+@[^<>\s]+)>/.exec(text)?.[1];
  const bare = bracketed ?? /[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/.exec(text)?.[0];
  if (bare === undefined || bare.length > 320) return null;
  const parsed = parseAddress(bare.replace(/\.$/, ""));
  return parsed.ok ? parsed.value.email : bare;
}

function hostIn(value: string): string | null {
  const host = /(?:^|;)\s*([A-Za-z0-9_.-]+\.[A-Za-z0-9-]+)/.exec(value)?.[1];
  return host !== undefined && host.length <= 255 ? host.toLowerCase() : null;
}

/** A date that is one, else null. */
export function dateIn(value: string): number | null {
  const ms = Date.parse(
    value
      .slice(0, longestDate)
      .replace(/\([^)]*\)/g, "")
      .trim(),
  );
  return Number.isFinite(ms) && ms > 0 && ms < 4_102_444_800_000 ? ms : null;
}

function utf8(latin1: string): string {
  const text = Buffer.from(latin1, "latin1").toString("utf8");
  return text.includes("\ufffd") ? latin1 : text;
}
