// Reads a mail that came back: a bounce with failed deliveries, a complaint, or neither.
// The entry to dsn.ts, bounce-text.ts, arf.ts and auto-reply.ts. It judges words, never senders: who may report on
// what is feedback's, and so are the proofs, which are collected here unchecked. Every mail is answered, however broken.
// Pure and synchronous: the caller runs it in a thread.
import { readComplaint, type Complaint } from "./arf.ts";
import { autoReplyMark } from "./auto-reply.ts";
import { readProseBounce, type ReturnContext } from "./bounce-text.ts";
import { signatureClaims, type SignatureClaim } from "./dkim-verify.ts";
import { readDeliveryStatus } from "./dsn.ts";
import type { Failure } from "./failure.ts";
import { messageTokenForm } from "./message-token.ts";
import { allParts, fieldOf, fieldText, readFields, readMime, type MimePart } from "./mime.ts";
import { readSesNotice } from "./ses-notice.ts";

export type { ReturnContext };

export type Returned =
  | { kind: "bounce"; failures: Failure[]; original: Original }
  | { kind: "complaint"; complaint: Complaint; original: Original; sender: ReportSender }
  | { kind: "nothing"; why: string };

/** What of our own a report and the message that it returns contain; none of it is checked yet. */
export interface Original {
  /** Local parts that have the form of our return paths (return-path.ts). */
  returnPaths: string[];
  /** Texts that have the form of our message tokens (message-token.ts). */
  tokens: string[];
}

/** What a mail proves about its sender without a DNS look-up. */
export interface ReportSender {
  /** The address in From, lower case; empty where there is none. */
  from: string;
  signatures: SignatureClaim[];
}

/** Why a report of a status or a notice is nothing: what it says is not a failure. */
export const noFailure = "a delivery status that is not a failure";

/** Reads at most 2 MB. Never throws. `came`: how the mail arrived, if known; else its Return-Path is used. */
export function readReturned(bytes: Uint8Array, came: Partial<ReturnContext> = {}): Returned {
  const root = readMime(bytes);
  const context: ReturnContext = {
    nullSender: came.nullSender ?? /^<>$/.test(fieldOf(root.fields, "return-path")),
    ownReturnPath: came.ownReturnPath ?? false,
    subjects: [...(came.subjects ?? []), ...returnedSubjects(root)],
  };
  const complaint = readComplaint(root);
  if (complaint === "not a complaint") return { kind: "nothing", why: "a report that is not a complaint" };
  if (complaint) return complaintOf(bytes, root, complaint);
  const ses = readSesNotice(root);
  if (ses?.kind === "other") return { kind: "nothing", why: noFailure };
  if (ses?.kind === "bounce") return { kind: "bounce", failures: ses.failures, original: originalOf(root) };
  if (ses?.kind === "complaint") return complaintOf(bytes, root, ses.complaint);
  const reported = readDeliveryStatus(root, context.subjects);
  if (reported !== null)
    return reported.length > 0
      ? { kind: "bounce", failures: reported, original: originalOf(root) }
      : { kind: "nothing", why: noFailure };
  const prose = readProseBounce(root, autoReplyMark(root.fields), context);
  if (typeof prose === "string") return { kind: "nothing", why: prose };
  return { kind: "bounce", failures: prose, original: originalOf(root) };
}

/** Subjects of the messages that a report returns, whole or as their header. */
function returnedSubjects(root: MimePart): string[] {
  return allParts(root)
    .filter(
      ({ type }) => type === "message/rfc822" || type === "text/rfc822-headers" || type === "message/global",
    )
    .map(({ body }) => fieldText(readFields(body).fields, "subject").replace(/\s+/g, " "))
    .slice(0, maxFound);
}

function complaintOf(bytes: Uint8Array, root: MimePart, complaint: Complaint): Returned {
  const sender = { from: addressOf(fieldOf(root.fields, "from")), signatures: signatureClaims(bytes) };
  return { kind: "complaint", complaint, original: originalOf(root), sender };
}

function addressOf(from: string): string {
  const text = from.slice(0, 1_000);
  return (/<([^<>\s]{1,320})>\s*$/.exec(text)?.[1] ?? text.trim()).toLowerCase();
}

const returnPath = /\b(b\+[a-z2-7]{18,60})@/gi;
const token = new RegExp(messageTokenForm.source, "gi");
const maxFound = 20;

function originalOf(root: MimePart): Original {
  const parts = allParts(root);
  const bodies = [
    ...parts.map((part) => part.body),
    ...parts.flatMap((part) => part.fields.map(({ value }) => value)),
  ];
  const find = (pattern: RegExp): string[] => {
    const found = new Set<string>();
    for (const body of bodies)
      for (const match of body.matchAll(pattern)) {
        if (found.size >= maxFound) return [...found];
        found.add(match[1] ?? match[0]);
      }
    return [...found];
  };
  return { returnPaths: find(returnPath), tokens: find(token) };
}
