// Mail to postmaster@ and abuse@ of this host (RFC 5321 §4.5.1, RFC 2142) goes to the operator as a notice that holds
// its head and its words; attachments stay behind. So many an hour; the rest is told to come again later, so that a
// flood of spam is no flood of notices; what answers by itself, or is a notice of ours on its way back, makes none, so
// that no loop comes of it. Closed where no operator is named, or where he would be reached through this
// very host.
import { createHash } from "node:crypto";
import { parseAddress } from "../mail/address.ts";
import { autoReplyMark } from "../mail/auto-reply.ts";
import { humanText } from "../mail/bounce-text.ts";
import { fieldOf, fieldText, readMime } from "../mail/mime.ts";
import type { FeedbackDeps } from "./mailbox.ts";

export interface Forwarding {
  readonly open: boolean;
  /** False: too many in this hour, or it could not be queued. True also for what makes no notice, lest one answers another. */
  forward(name: string, mail: Uint8Array): Promise<boolean>;
}

const perHour = 30;
const hourMs = 3_600_000;
const longestText = 20_000;

export function createForwarding({
  config,
  notices,
  clock,
}: Pick<FeedbackDeps, "config" | "notices" | "clock">): Forwarding {
  const { email } = config.operations;
  const parsed = email === null ? null : parseAddress(email);
  const lately: number[] = [];
  const ourIds = `@${config.hostname.toLowerCase()}>`;
  return {
    open: parsed?.ok === true && parsed.value.ascii !== config.hostname.toLowerCase(),
    async forward(name, mail) {
      const root = readMime(mail);
      const ours = fieldOf(root.fields, "message-id").toLowerCase().endsWith(ourIds);
      if (ours || autoReplyMark(root.fields) !== null) return true;
      const now = clock.monotonic();
      while (lately[0] !== undefined && lately[0] <= now - hourMs) lately.shift();
      if (lately.length >= perHour) return false;
      lately.push(now);
      const head = ["From", "To", "Date", "Subject", "Message-ID"].map(
        (field) => `${field}: ${fieldText(root.fields, field.toLowerCase()).slice(0, 500)}`,
      );
      return notices.notify(
        `mail:${createHash("sha256").update(mail).digest("hex")}`,
        `mail to ${name}@${config.hostname}`,
        `${head.join("\n")}\n\n${humanText(root).slice(0, longestText)}\n`,
      );
    },
  };
}
