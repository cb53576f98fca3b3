// What a notice to the operator shows of a mail to postmaster or abuse: its header and text, without attachments; and
// whether such a notice could start a mail loop.
import { autoReplyMark } from "./auto-reply.ts";
import { humanText } from "./bounce-text.ts";
import { fieldOf, fieldText, readMime } from "./mime.ts";

export interface Notice {
  /** Message-ID as it stands, lower case. */
  messageId: string;
  /** It was sent by a program (RFC 3834), so nothing is to be sent because of it. */
  automatic: boolean;
  /** `From: …` and the like, each at most 500 characters. */
  head: string[];
  /** At most 20,000 characters. */
  text: string;
}

const shown = ["From", "To", "Date", "Subject", "Message-ID"];
const longestField = 500;
const longestText = 20_000;

/** Reads at most 2 MB. Never throws. */
export function readNotice(bytes: Uint8Array): Notice {
  const root = readMime(bytes);
  return {
    messageId: fieldOf(root.fields, "message-id").toLowerCase(),
    automatic: autoReplyMark(root.fields) !== null,
    head: shown.map(
      (name) => `${name}: ${fieldText(root.fields, name.toLowerCase()).slice(0, longestField)}`,
    ),
    text: humanText(root).slice(0, longestText),
  };
}
