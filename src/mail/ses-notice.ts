// Amazon SES, as a smart host, can report in JSON by mail: a notification in the text, bare or wrapped by SNS as a
// string. Only what a bounce or a complaint needs is read; everything is checked, nothing is trusted.
import type { Complaint } from "./arf.ts";
import type { Failure } from "./failure.ts";
import { textOf, type MimePart } from "./mime.ts";
import { oneLine, quotedReply } from "./reply-text.ts";

export type SesNotice =
  { kind: "bounce"; failures: Failure[] } | { kind: "complaint"; complaint: Complaint } | { kind: "other" };

const longestText = 200_000;
const maxRecipients = 100;

/** The notification that a mail is; null where it is none. */
export function readSesNotice(root: MimePart): SesNotice | null {
  if (root.body.length > longestText || !root.body.includes("notificationType")) return null;
  const outer = parseObject(textOf(root));
  const notice = typeof outer?.["Message"] === "string" ? parseObject(outer["Message"]) : outer;
  const type = text(notice, "notificationType");
  if (!notice || type === null) return null;
  if (type === "Bounce") return { kind: "bounce", failures: failuresOf(object(notice, "bounce")) };
  if (type === "Complaint") return { kind: "complaint", complaint: complaintOf(object(notice, "complaint")) };
  return { kind: "other" };
}

function failuresOf(bounce: Fields): Failure[] {
  return list(bounce, "bouncedRecipients").map((one) => {
    const reply = quotedReply(text(one, "diagnosticCode") ?? "");
    return {
      recipients: addressOf(one),
      code: reply.code,
      status: text(one, "status")?.match(/^[245]\.\d{1,3}\.\d{1,3}$/)?.[0] ?? reply.status,
      text:
        reply.text === ""
          ? oneLine(`${text(bounce, "bounceType")} ${text(bounce, "bounceSubType")}`)
          : reply.text,
      mta: null,
      reportedAt: dateOf(text(bounce, "timestamp")),
    };
  });
}

function complaintOf(complaint: Fields): Complaint {
  const feedbackType = text(complaint, "complaintFeedbackType") ?? "abuse";
  return {
    feedbackType: feedbackType.toLowerCase().slice(0, 40),
    type:
      feedbackType === "abuse" || feedbackType === "fraud" || feedbackType === "virus"
        ? feedbackType
        : "other",
    source: "amazon_ses",
    recipients: list(complaint, "complainedRecipients").flatMap(addressOf),
    reportedAt: dateOf(text(complaint, "timestamp")),
    sendingIp: null,
  };
}

type Fields = Record<string, unknown>;

/** JSON that begins the text; what a footer adds behind the last brace is left out. */
function parseObject(source: string): Fields | null {
  try {
    const value: unknown = JSON.parse(source.slice(source.indexOf("{"), source.lastIndexOf("}") + 1));
    return isFields(value) ? value : null;
  } catch {
    // Mail folds long lines: a string that was broken by it is mended.
    try {
      const value: unknown = JSON.parse(
        source.slice(source.indexOf("{"), source.lastIndexOf("}") + 1).replace(/\n ?/g, ""),
      );
      return isFields(value) ? value : null;
    } catch {
      return null;
    }
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function object(fields: Fields, name: string): Fields {
  const value = fields[name];
  return isFields(value) ? value : {};
}

function list(fields: Fields, name: string): Fields[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter(isFields).slice(0, maxRecipients) : [];
}

function text(fields: Fields | null, name: string): string | null {
  const value = fields?.[name];
  return typeof value === "string" ? value.slice(0, 4_000) : null;
}

function addressOf(fields: Fields): string[] {
  const address = text(fields, "emailAddress");
  return address === null ? [] : [(/<([^<>]*)>/.exec(address)?.[1] ?? address).slice(0, 320)];
}

function dateOf(value: string | null): number | null {
  const ms = Date.parse(value ?? "");
  return Number.isFinite(ms) ? ms : null;
}
