// Counts open connections, in total and per source, so that one source cannot take every connection. A source is an
// IPv4 address or the /64 of an IPv6 address (model/ip-source.ts). SMTP sessions, TLS handshakes and HTTP use it.
import { sourceOf } from "../model/ip-source.ts";

export interface ConnectionLimiter {
  /** Counts one connection; null where a limit is met. The result ends it (once; later calls do nothing). */
  enter(ip: string): (() => void) | null;
}

/** Limits: connections, at least 1. */
export function createConnectionLimiter(limits: { total: number; perSource: number }): ConnectionLimiter {
  const open = new Map<string, number>();
  let total = 0;
  return {
    enter(ip) {
      const source = sourceOf(ip);
      const ofSource = open.get(source) ?? 0;
      if (total >= limits.total || ofSource >= limits.perSource) return null;
      total += 1;
      open.set(source, ofSource + 1);
      let counted = true;
      return () => {
        if (!counted) return;
        counted = false;
        total -= 1;
        const left = (open.get(source) ?? 1) - 1;
        if (left > 0) open.set(source, left);
        else open.delete(source);
      };
    },
  };
}
