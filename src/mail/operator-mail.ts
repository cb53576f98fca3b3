// What the operator reads of a mail to postmaster@ or abuse@: its head and its words. Attachments stay behind. Pure and
// synchronous, as returned.ts: the caller runs it where its work holds up nobody.
import { autoReplyMark } from "./auto-reply.ts";
import { humanText } from "./bounce-text.ts";
import { fieldOf, fieldText, readMime } from "./mime.ts";

export interface OperatorMail {
  /** The Message-ID as it stands, lower case; empty where there is none. */
  messageId: string;
  /** Something that answers by itself wrote it (auto-reply.ts). */
  automatic: boolean;
  /** From, To, Date, Subject, Message-ID, a line each. */
  head: string;
  /** At most 20,000 characters. */
  text: string;
}

const longestField = 500;
const longestText = 20_000;

/** Never throws. */
export function readOperatorMail(mail: Uint8Array): OperatorMail {
  const root = readMime(mail);
  return {
    messageId: fieldOf(root.fields, "message-id").toLowerCase(),
    automatic: autoReplyMark(root.fields) !== null,
    head: ["From", "To", "Date", "Subject", "Message-ID"]
      .map((field) => `${field}: ${fieldText(root.fields, field.toLowerCase()).slice(0, longestField)}`)
      .join("\n"),
    text: humanText(root).slice(0, longestText),
  };
}
