// Answers kept for as long as their TTL says, bounded in time and number. What could not be told
// ("failed") is never kept. Time is the steady clock's, so that a wall clock that jumps neither freezes nor empties it.
import type { Clock } from "../clock.ts";
import type { WireRecord } from "./message.ts";
import type { DnsAnswer } from "./resolver.ts";

/** No answer is believed for longer, whatever its TTL. */
export const maxTtlSeconds = 3600;
/** RFC 2308 §5 leaves the limit to us: a name that appears should not wait long. */
const maxNegativeTtlSeconds = 300;

export interface Cache {
  get(key: string): DnsAnswer<WireRecord> | null;
  /** `ttlSeconds` of a negative answer from its SOA; a TTL of 0 is not kept (RFC 1035 §3.2.1). */
  put(key: string, answer: DnsAnswer<WireRecord>, ttlSeconds: number): void;
}

export function createCache(clock: Clock, maxEntries = 10_000): Cache {
  const entries = new Map<string, { answer: DnsAnswer<WireRecord>; until: number }>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (!entry) return null;
      const leftMs = entry.until - clock.monotonic();
      if (leftMs <= 0) {
        entries.delete(key);
        return null;
      }
      return entry.answer.kind === "found"
        ? { ...entry.answer, ttlSeconds: Math.ceil(leftMs / 1000) }
        : entry.answer;
    },
    put(key, answer, ttlSeconds) {
      const seconds = Math.min(ttlSeconds, answer.kind === "found" ? maxTtlSeconds : maxNegativeTtlSeconds);
      if (answer.kind === "failed" || seconds <= 0) return;
      entries.delete(key);
      entries.set(key, { answer, until: clock.monotonic() + seconds * 1000 });
      const oldest = entries.size > maxEntries ? entries.keys().next() : null;
      if (oldest && !oldest.done) entries.delete(oldest.value);
    },
  };
}
