// Caches answers for their TTL, bounded in time and size. A failed look-up ("failed") is kept for
// half a minute at first, twice as long each time that it fails again, five minutes at most (RFC 9520 §3.2, RFC 2308 §7).
// A zone with a million names pushes out what its own account asked for. Time is the steady clock's, so that a wall
// clock that jumps neither freezes nor empties it.
import type { Clock } from "../clock.ts";
import { createFairMap } from "../fairness/fair-map.ts";
import type { Owner } from "../fairness.ts";
import type { WireRecord } from "./message.ts";
import type { DnsAnswer } from "./resolver.ts";

/** No answer is kept longer, whatever its TTL. */
export const maxTtlSeconds = 3600;
/** RFC 2308 §5 leaves the limit to us: a name that appears should not wait long. */
const maxNegativeTtlSeconds = 300;
const maxFailureMs = 300_000;
/** How long a failure is remembered after the name may be looked up again. */
const failureRememberedMs = 300_000;

export interface Cache {
  get(key: string): DnsAnswer<WireRecord> | null;
  /** The last look-up of the key failed, minutes ago at most. */
  failedLately(key: string): boolean;
  /** `ttlSeconds` of a negative answer from its SOA; a TTL of 0 is not kept (RFC 1035 §3.2.1), a failure has none. */
  put(owner: Owner, key: string, answer: DnsAnswer<WireRecord>, ttlSeconds: number): void;
}

export interface CacheOptions {
  /** Of a first failure. */
  failureMs: number;
  /** About so many bytes in all. */
  maxBytes?: number;
}

interface Entry {
  answer: DnsAnswer<WireRecord>;
  until: number;
  /** How long a failure was kept; 0 for an answer. */
  failureMs: number;
}

export function createCache(clock: Clock, { failureMs, maxBytes = 16 * 1024 * 1024 }: CacheOptions): Cache {
  const entries = createFairMap<Entry>(maxBytes);

  const keptMs = (key: string, answer: DnsAnswer<WireRecord>, ttlSeconds: number): number => {
    if (answer.kind === "found") return 1000 * Math.min(ttlSeconds, maxTtlSeconds);
    if (answer.kind !== "failed") return 1000 * Math.min(ttlSeconds, maxNegativeTtlSeconds);
    const before = entries.get(key)?.failureMs ?? 0;
    return Math.min(maxFailureMs, Math.max(failureMs, 2 * before));
  };

  return {
    get(key) {
      const entry = entries.get(key);
      if (!entry) return null;
      const leftMs = entry.until - clock.monotonic();
      if (leftMs <= 0) {
        if (entry.failureMs === 0 || leftMs < -failureRememberedMs) entries.delete(key);
        return null;
      }
      return entry.answer.kind === "found"
        ? { ...entry.answer, ttlSeconds: Math.ceil(leftMs / 1000) }
        : entry.answer;
    },
    failedLately(key) {
      const entry = entries.get(key);
      return (
        entry !== undefined && entry.failureMs > 0 && clock.monotonic() < entry.until + failureRememberedMs
      );
    },
    put(owner, key, answer, ttlSeconds) {
      // Two owners asked at once: a failure of one does not undo what the other found out.
      const known = answer.kind === "failed" ? entries.get(key) : undefined;
      if (known && known.failureMs === 0 && known.until > clock.monotonic()) return;
      const ms = keptMs(key, answer, ttlSeconds);
      if (ms <= 0) return entries.delete(key);
      const entry = { answer, until: clock.monotonic() + ms, failureMs: answer.kind === "failed" ? ms : 0 };
      entries.set(owner, key, entry, bytesOf(key, answer));
    },
  };
}

/** About what an entry takes. */
function bytesOf(key: string, answer: DnsAnswer<WireRecord>): number {
  let bytes = 300 + 2 * key.length;
  if (answer.kind === "failed") bytes += answer.why.length;
  if (answer.kind === "found")
    for (const { name, value } of answer.records) bytes += 120 + name.length + value.length;
  return bytes;
}
