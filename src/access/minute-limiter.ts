// Limits what one source may do within a minute: sessions, messages, bytes of work. A source is an IPv4 address or the
// /64 of an IPv6 address (model/ip-source.ts). The minute begins with the first thing that is counted, so a refusal can say
// when the source may go on. Memory is bounded: of more than 10,000 sources the one whose minute began first is dropped.
import { minuteMs, type Clock } from "../clock.ts";
import { sourceOf } from "../model/ip-source.ts";

export interface MinuteLimiter {
  /** Whole seconds until the source may go on; 0: it may now. */
  waitOf(ip: string): number;
  /** Counts; what passes the limit is counted too, so the caller asks `waitOf` before. */
  spend(ip: string, amount?: number): void;
}

const mostSources = 10_000;

export function createMinuteLimiter(deps: {
  perMinute: number;
  clock: Pick<Clock, "monotonic">;
}): MinuteLimiter {
  /** In the order in which their minutes began. */
  const sources = new Map<string, { began: number; spent: number }>();

  const current = (source: string, now: number) => {
    const found = sources.get(source);
    return found && now - found.began < minuteMs ? found : null;
  };

  return {
    waitOf(ip) {
      const now = deps.clock.monotonic();
      const found = current(sourceOf(ip), now);
      if (!found || found.spent < deps.perMinute) return 0;
      return Math.max(1, Math.ceil((found.began + minuteMs - now) / 1000));
    },
    spend(ip, amount = 1) {
      const now = deps.clock.monotonic();
      const source = sourceOf(ip);
      const found = current(source, now);
      if (found) {
        found.spent += amount;
        return;
      }
      sources.delete(source);
      for (const [oldest, { began }] of sources) {
        if (now - began < minuteMs && sources.size < mostSources) break;
        sources.delete(oldest);
      }
      sources.set(source, { began: now, spent: amount });
    },
  };
}
