// Forwards mail to postmaster@ and abuse@ of this host (RFC 5321 §4.5.1, RFC 2142) to the operator, as a notice with its
// header and its text, without attachments (notifications/forwarded-mail.ts). At most 30 an hour, so that a flood of spam
// is not a flood of notices; the rest is deferred. Automatic replies (RFC 3834), and our own notices that come back, are
// accepted and not forwarded, so that no loop starts. Disabled if operations.email is not set or is on this host.
import { hourMs } from "../clock.ts";
import { parseAddress } from "../mail/address.ts";
import type { Notice } from "../mail/notice.ts";
import { notifyForwardedMail } from "../notifications/forwarded-mail.ts";
import type { FeedbackDeps } from "./mailbox.ts";

export interface Forwarding {
  readonly open: boolean;
  /** False: too many in this hour, or the notice could not be queued. True also where the mail is not forwarded. */
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
  const forwardedAt: number[] = [];
  const ourIds = `@${config.hostname.toLowerCase()}>`;
  return {
    open: parsed?.ok === true && parsed.value.ascii !== config.hostname.toLowerCase(),
    async forward(name, mail) {
      let read: Notice;
      try {
        read = await readNotice(mail);
      } catch (error) {
        log.warn({ err: error }, "mail to the operator could not be parsed now; it is deferred");
        return false;
      }
      if (read.messageId.endsWith(ourIds) || read.automatic) return true;
      const now = clock.monotonic();
      while (forwardedAt[0] !== undefined && forwardedAt[0] <= now - hourMs) forwardedAt.shift();
      if (forwardedAt.length >= perHour) return false;
      forwardedAt.push(now);
      return notifyForwardedMail(notices, `${name}@${config.hostname}`, mail, read);
    },
  };
}
