// Limits of the inbound port: what one source may do within a minute, and how much memory all incoming mail may use at
// a time. Honest servers stay below by far, and one that does not (a list of ten thousand bad addresses, all at one
// provider) has its reports tried again by its queue. Each refusal says which limit, and when to try again.
import { createMinuteLimiter } from "../access/minute-limiter.ts";
import type { Clock } from "../clock.ts";
import { SmtpReply } from "./replies.ts";

/** Of a mail: the report stands first, the returned message behind it. */
export const keptBytes = 262_144;

export const inboundLimits = {
  /** Sessions at a time. */
  sessions: { total: 500, perSource: 20 },
  /** Of one source within a minute. */
  perMinute: { sessions: 600, messages: 600, recipients: 3_000, kilobytes: 65_536 },
  /** Of all mails that are being received or read. */
  heldBytes: 67_108_864,
} as const;

export interface InboundLimits {
  /** Counts a session; the text of the 421 where the limit is met. */
  session(ip: string): string | null;
  /** Counts a message, a recipient. Throws the reply where a limit is met. */
  message(ip: string): void;
  recipient(ip: string): void;
  /** Memory for one mail. */
  hold(ip: string): HeldMail;
}

export interface HeldMail {
  /** Keeps the chunk as far as it fits into the 256 KB. Throws the reply if all mails together have too much. */
  add(chunk: Buffer): void;
  /** What was kept. Its bytes count as work of the source. */
  bytes(): Buffer;
  /** Releases the memory; `bytes` must not be used afterwards. */
  release(): void;
}

const firstBytes = 16_384;

export function createInboundLimits(clock: Pick<Clock, "monotonic">): InboundLimits {
  const limiterOf = (perMinute: number) => createMinuteLimiter({ perMinute, clock });
  const { perMinute, heldBytes } = inboundLimits;
  const sessions = limiterOf(perMinute.sessions);
  const messages = limiterOf(perMinute.messages);
  const recipients = limiterOf(perMinute.recipients);
  const work = limiterOf(perMinute.kilobytes * 1024);
  let held = 0;

  const refuse = (ip: string, what: string, waitSeconds: number): void => {
    if (waitSeconds > 0) throw new SmtpReply(451, "4.7.0", words(ip, what, waitSeconds));
  };

  return {
    session(ip) {
      const wait = sessions.waitOf(ip);
      if (wait > 0) return `4.7.0 ${words(ip, `${perMinute.sessions} sessions`, wait)}`;
      sessions.spend(ip);
      return null;
    },
    message(ip) {
      refuse(ip, `${perMinute.messages} mails`, messages.waitOf(ip));
      refuse(ip, `${perMinute.kilobytes} kilobytes`, work.waitOf(ip));
      messages.spend(ip);
    },
    recipient(ip) {
      refuse(ip, `${perMinute.recipients} recipients`, recipients.waitOf(ip));
      recipients.spend(ip);
    },
    hold(ip) {
      let buffer = Buffer.alloc(0);
      let length = 0;
      const grow = (needed: number): void => {
        if (needed <= buffer.length) return;
        const size = Math.min(keptBytes, Math.max(firstBytes, buffer.length * 2, needed));
        const more = size - buffer.length;
        if (held + more > heldBytes)
          throw new SmtpReply(
            451,
            "4.7.0",
            `Mail in transfer already uses ${heldBytes} bytes of memory, the limit; try again in a minute`,
          );
        held += more;
        const larger = Buffer.allocUnsafeSlow(size);
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      };
      return {
        add(chunk) {
          const part = chunk.subarray(0, keptBytes - length);
          grow(length + part.length);
          part.copy(buffer, length);
          length += part.length;
        },
        bytes() {
          work.spend(ip, length);
          return buffer.subarray(0, length);
        },
        release() {
          held -= buffer.length;
          buffer = Buffer.alloc(0);
          length = 0;
        },
      };
    },
  };
}

function words(ip: string, what: string, waitSeconds: number): string {
  return `The limit of ${what} a minute from ${ip} is reached; try again in ${waitSeconds} seconds`;
}
