// The operator's mail that carries a mail to postmaster@ or abuse@ of this host: its header and its text. Which mail is
// forwarded, and how many an hour: feedback/forwarding.ts.
import { createHash } from "node:crypto";
import type { Notice } from "../mail/notice.ts";
import type { Notices } from "./notices.ts";

/** `mailbox`: the address that it came to. False: it could not be queued. */
export function notifyForwardedMail(
  notices: Pick<Notices, "notify">,
  mailbox: string,
  mail: Uint8Array,
  { head, text }: Notice,
): Promise<boolean> {
  return notices.notify(
    `mail:${createHash("sha256").update(mail).digest("hex")}`,
    `mail to ${mailbox}`,
    `${head.join("\n")}\n\n${text}\n`,
  );
}
