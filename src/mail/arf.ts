// Complaints: Abuse Reporting Format (RFC 5965) and the forms without it: Microsoft's JMRP, which returns the mail
// with one field of its own, and the mail programs that unsubscribe by mail. Fields in any case, a report part in
// base64 and a missing date are accepted. Authentication reports and `not-spam` are not complaints.
import type { ComplaintType } from "../model/bounce.ts";
import { dateIn } from "./dsn.ts";
import { feedbackLoops } from "./feedback-loops.ts";
import { allParts, fieldOf, fieldText, readFields, textOf, type MimeField, type MimePart } from "./mime.ts";

export interface Complaint {
  /** RFC 5965 token, lower case. */
  feedbackType: string;
  type: ComplaintType;
  /** The feedback loop that the report names; null: unknown. */
  source: string | null;
  /** Recipients that the report names, as written; often redacted. */
  recipients: string[];
  /** When the reported mail arrived or the report was made, milliseconds since 1970. */
  reportedAt: number | null;
  sendingIp: string | null;
}

/** RFC 5965 §3.5 and its IANA registry; what is not here is `other`. */
const types: Record<string, ComplaintType | "no complaint"> = {
  abuse: "abuse",
  fraud: "fraud",
  virus: "virus",
  "opt-out": "opt_out",
  "opt-out-list": "opt_out",
  other: "other",
  "not-spam": "no complaint",
  "auth-failure": "no complaint",
  dkim: "no complaint",
};

const maxRecipients = 100;

/** The complaint in a mail; "not a complaint" for a report of another kind, null where there is no report at all. */
export function readComplaint(root: MimePart): Complaint | "not a complaint" | null {
  const parts = allParts(root);
  const report = parts.find(({ type }) => type === "message/feedback-report");
  if (report) return readReport(root, readFields(`${report.body.trim()}\n`).fields);
  const loose = parts.find((part) => part.type === "text/plain" && /^feedback-type:\s*\S/im.test(part.body));
  const declared = root.parameters.get("report-type")?.toLowerCase() === "feedback-report";
  if (loose && declared) return readReport(root, readFields(`${loose.body.trim()}\n`).fields);
  return readJmrp(root, parts) ?? readUnsubscribe(root);
}

function readReport(root: MimePart, fields: MimeField[]): Complaint | "not a complaint" {
  const feedbackType = /[a-z][a-z-]*/i.exec(fieldOf(fields, "feedback-type"))?.[0]?.toLowerCase() ?? "abuse";
  const type = Object.hasOwn(types, feedbackType) ? (types[feedbackType] ?? "other") : "other";
  if (type === "no complaint") return "not a complaint";
  const arrived = dateIn(fieldOf(fields, "arrival-date")) ?? dateIn(fieldOf(fields, "received-date"));
  return {
    feedbackType,
    type,
    source: sourceOf(root, `${fieldOf(fields, "user-agent")} ${fieldOf(fields, "reporting-mta")}`),
    recipients: fields
      .filter(({ lower }) => lower === "original-rcpt-to" || lower === "removal-recipient")
      .map(({ value }) => bare(value))
      .slice(0, maxRecipients),
    reportedAt: arrived ?? dateIn(fieldOf(root.fields, "date")),
    sendingIp: ipIn(fieldOf(fields, "source-ip")),
  };
}

/** Microsoft's Junk Mail Reporting Program: the mail itself, with X-HmXmrOriginalRecipient on top, and no report. */
function readJmrp(root: MimePart, parts: MimePart[]): Complaint | null {
  if (!/staff@(?:hotmail|outlook)\.com/i.test(fieldOf(root.fields, "from"))) return null;
  const mail = parts.find(({ type }) => type === "message/rfc822");
  const fields = mail ? readFields(mail.body.replace(/^\n+/, "")).fields : [];
  const recipient = fieldOf(fields, "x-hmxmroriginalrecipient");
  if (!mail || (recipient === "" && !/complaint/i.test(fieldText(root.fields, "subject")))) return null;
  return {
    feedbackType: "abuse",
    type: "abuse",
    source: "microsoft_jmrp",
    recipients: recipient === "" ? [] : [bare(recipient)],
    reportedAt: dateIn(fieldOf(root.fields, "date")),
    sendingIp: ipIn(fieldText(root.fields, "subject")),
  };
}

/** A mail program that unsubscribes for its user by mail, at an address that is ours: it says so in its only line. */
function readUnsubscribe(root: MimePart): Complaint | null {
  if (!/^unsubscribe$/i.test(fieldText(root.fields, "subject").trim())) return null;
  if (!/sent this e?mail to unsubscribe/i.test(textOf(root).slice(0, 2_000))) return null;
  return {
    feedbackType: "opt-out",
    type: "opt_out",
    source: sourceOf(root, textOf(root).slice(0, 200)),
    recipients: [],
    reportedAt: dateIn(fieldOf(root.fields, "date")),
    sendingIp: null,
  };
}

function sourceOf(root: MimePart, agent: string): string | null {
  const said = `${fieldOf(root.fields, "from")} ${agent} ${fieldText(root.fields, "subject")}`.slice(
    0,
    2_000,
  );
  return feedbackLoops.find(({ words }) => words.test(said))?.source ?? null;
}

function bare(value: string): string {
  return (/<([^<>]*)>/.exec(value)?.[1] ?? value)
    .replace(/^\s*rfc822\s*;\s*/i, "")
    .trim()
    .slice(0, 320);
}

function ipIn(value: string): string | null {
  return (
    /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}/i.exec(value)?.[0] ??
    null
  );
}
