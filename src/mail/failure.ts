// A failed delivery from a bounce of any format, and its classification: permanent or temporary, and the cause by the
// same table as a reply in a session (classify.ts).
import type { BounceType } from "../model/bounce.ts";
import { classifyReply, isTooManyRecipients } from "./classify.ts";
import type { Classification } from "../model/classification.ts";

/** One recipient to whom a delivery failed for good (or whose time is up). */
export interface Failure {
  /** As the report writes them, the likeliest first; empty if it names none. */
  recipients: string[];
  /** 400 to 599; null where no reply is quoted. */
  code: number | null;
  status: string | null;
  /** The receiving server's words, one line, at most 2,000 characters. */
  text: string;
  /** Host name of the server that refused. */
  mta: string | null;
  /** When the report says that it happened, milliseconds since 1970. */
  reportedAt: number | null;
  /** Its Action is none of RFC 3464's: failed, and whether for good is not known. */
  unknownAction?: true;
  /** Code and enhanced status of the reply are of different classes (`550 4.2.1`). */
  mixedClasses?: true;
}

/** The class of the status; where there is none the code's first digit; else nothing is known. */
export function failureType(
  failure: Pick<Failure, "code" | "status" | "unknownAction" | "text">,
): BounceType {
  if (failure.unknownAction) return "undetermined";
  if (isTooManyRecipients(failure)) return "soft";
  const digit = failure.status?.[0] ?? String(failure.code ?? "")[0];
  return digit === "5" ? "hard" : digit === "4" ? "soft" : "undetermined";
}

/** The failure as a reply: its code, else one that says no more than its class; 0 where even that is unknown. */
export function replyOf(failure: Failure): { code: number; status: string | null; text: string } {
  const type = failureType(failure);
  const bare = type === "hard" ? 550 : type === "soft" ? 450 : 0;
  return { code: failure.code ?? bare, status: failure.status, text: failure.text };
}

export function classifyFailure(failure: Failure): Classification {
  return classifyReply(replyOf(failure));
}
