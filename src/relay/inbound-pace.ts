// How fast one source's mails are read on the inbound port: its first megabytes as they come, the rest at a steady rate. TCP
// slows the sender down by that, and nothing is refused: reports are small, and a sender of many large ones waits for itself.
// A source is an IPv4 address or the /64 of an IPv6 address (model/ip-source.ts).
import { sourceOf } from "../model/ip-source.ts";
import type { Clock } from "../clock.ts";

export const inboundPace = { bytesPerSecond: 1_048_576, burstBytes: 4_194_304 } as const;

/** Of more, the source that has waited for longest is forgotten: it begins with a burst again. */
const mostSources = 10_000;

export interface InboundPace {
  /** Counts what was read of the source; resolves when more may be read. */
  read(ip: string, bytes: number): Promise<void> | undefined;
}

export function createInboundPace(clock: Pick<Clock, "monotonic" | "after">): InboundPace {
  const bytesPerMs = inboundPace.bytesPerSecond / 1000;
  const burstMs = inboundPace.burstBytes / bytesPerMs;
  /** When what was read would have come at the steady rate; in the order in which the sources were read. */
  const paidUntil = new Map<string, number>();

  return {
    read(ip, bytes) {
      const now = clock.monotonic();
      const source = sourceOf(ip);
      const until = Math.max(now, paidUntil.get(source) ?? now) + bytes / bytesPerMs;
      paidUntil.delete(source);
      for (const [oldest, paid] of paidUntil) {
        if (paid > now && paidUntil.size < mostSources) break;
        paidUntil.delete(oldest);
      }
      paidUntil.set(source, until);
      const waitMs = until - now - burstMs;
      return waitMs <= 0 ? undefined : new Promise((resolve) => void clock.after(waitMs, resolve));
    },
  };
}
