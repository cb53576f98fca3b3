// Mail to postmaster@ and abuse@ of this host (RFC 5321 §4.5.1, RFC 2142) goes to the operator as a notice that holds
// its head and its words; attachments stay behind. So many an hour; the rest is told to come again later, so that a
// flood of spam is no flood of notices; what answers by itself, or is a notice of ours on its way back, makes none, so
// that no loop comes of it. Closed where no operator is named, or where he would be reached through this
// very host.
import { createHash } from "node:crypto";
import { hourMs } from "../clock.ts";
import { parseAddress } from "../mail/address.ts";
import type { Notice } from "../mail/notice.ts";
import type { FeedbackDeps } from "./mailbox.ts";

export interface Forwarding {
  readonly open: boolean;
  /** False: too many in this hour, or it could not be queued. True also for what makes no notice, lest one answers another. */
  forward(name: string, mail: Uint8Array): Promise<boolean>;
}

const perHour = 30;

export function createForwarding({
  config,
  notices,
  readNotice,
  clock,
  log,
}: Pick<FeedbackDeps, "config" | "notices" | "readNotice" | "clock" | "log">): Forwarding {
  const { email } = config.operations;
  const parsed = email === null ? null : parseAddress(email);
  const lately: number[] = [];
  const ourIds = `@${config.hostname.toLowerCase()}>`;
  return {
    open: parsed?.ok === true && parsed.value.ascii !== config.hostname.toLowerCase(),
    async forward(name, mail) {
      let read: Notice;
      try {
        read = await readNotice(mail);
      } catch (error) {
        log.warn(
          { err: error },
          "a mail to the operator could not be read now; its sender is asked to try again",
        );
        return false;
      }
      if (read.messageId.endsWith(ourIds) || read.automatic) return true;
      const now = clock.monotonic();
      while (lately[0] !== undefined && lately[0] <= now - hourMs) lately.shift();
      if (lately.length >= perHour) return false;
      lately.push(now);
      return notices.notify(
        `mail:${createHash("sha256").update(mail).digest("hex")}`,
        `mail to ${name}@${config.hostname}`,
        `${read.head.join("\n")}\n\n${read.text}\n`,
      );
    },
  };
}
