// What a mail that came back says: that deliveries failed, that somebody complained, or nothing that concerns us.
// The entry to dsn.ts, bounce-text.ts, arf.ts and auto-reply.ts. It judges words, never senders: who may report on
// what is feedback's. Every mail is answered, however broken it is.
import { readComplaint, type Complaint } from "./arf.ts";
import { autoReplyMark } from "./auto-reply.ts";
import { readProseBounce } from "./bounce-text.ts";
import { readDeliveryStatus } from "./dsn.ts";
import type { Failure } from "./failure.ts";
import { allParts, readMime, type MimePart } from "./mime.ts";
import { readSesNotice } from "./ses-notice.ts";

export type Returned =
  | { kind: "bounce"; failures: Failure[]; original: Original }
  | { kind: "complaint"; complaint: Complaint; original: Original }
  | { kind: "nothing"; why: string };

/** What a report and the message that it returns hold of our own making; none of it is checked yet. */
export interface Original {
  /** Message-IDs with their brackets, in the order in which they are found. */
  messageIds: string[];
  /** Local parts that have the form of our return paths (return-path.ts). */
  returnPaths: string[];
  /** Ids that have the form of our messages', `msg_…`: our Received field holds one. */
  traceIds: string[];
}

/** At most 2 MB are looked at. Never throws. */
export function readReturned(bytes: Uint8Array): Returned {
  const root = readMime(bytes);
  const complaint = readComplaint(root);
  if (complaint === "not a complaint") return { kind: "nothing", why: "a report that is no complaint" };
  if (complaint) return { kind: "complaint", complaint, original: originalOf(root) };
  const ses = readSesNotice(root);
  if (ses?.kind === "other") return { kind: "nothing", why: "a notification of no failure" };
  if (ses?.kind === "bounce") return { kind: "bounce", failures: ses.failures, original: originalOf(root) };
  if (ses?.kind === "complaint")
    return { kind: "complaint", complaint: ses.complaint, original: originalOf(root) };
  const reported = readDeliveryStatus(root);
  if (reported !== null)
    return reported.length > 0
      ? { kind: "bounce", failures: reported, original: originalOf(root) }
      : { kind: "nothing", why: "a delivery status that is no failure" };
  const prose = readProseBounce(root, autoReplyMark(root.fields));
  if (typeof prose === "string") return { kind: "nothing", why: prose };
  return { kind: "bounce", failures: prose, original: originalOf(root) };
}

const messageId = /^[ \t>]*message-id:[ \t]*(?:\n[ \t]*)?(<[^\s<>]{1,250}>)/gim;
const returnPath = /\b(b-[a-z2-7]{18,60})@/gi;
const traceId = /\bmsg_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g;
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
  return { messageIds: find(messageId), returnPaths: find(returnPath), traceIds: find(traceId) };
}
