// The lock on a source address after many failed authentications: 50 in a row within ten minutes, REST
// and SMTP counted together, shut it out for five, even with a valid key. A success resets the count.
// Measured on the monotonic clock, so that a jump of the wall clock neither lengthens nor lifts a lock.
// Memory is bounded: beyond the limit the address that failed longest ago is forgotten.
import type { Clock } from "../clock.ts";
import { sourceOf } from "../model/ip-source.ts";

export const lockoutRule = { failures: 50, windowMs: 10 * 60_000, lockMs: 5 * 60_000, maxSources: 100_000 };

interface Record {
  failures: number;
  since: number;
  lockedUntil: number;
}

export interface LockedSource {
  /** An IPv4 address, or the /64 of an IPv6 address. */
  source: string;
  failures: number;
  leftMs: number;
}

export interface Lockout {
  /** Seconds (at least 1) until the source may try again; 0 where it is not locked. */
  secondsLeft(ip: string): number;
  /** Counts a failure; true when this one shut the source out. */
  failed(ip: string): boolean;
  succeeded(ip: string): void;
  /** The sources that are shut out now. */
  list(): LockedSource[];
  /** Ends the lock on a source, named by any of its addresses or as `list` names it; false: there is none. */
  clear(ip: string): boolean;
  /** How many sources are remembered. */
  readonly size: number;
}

export function createLockout(clock: Clock, rule = lockoutRule): Lockout {
  const sources = new Map<string, Record>();

  return {
    secondsLeft(ip) {
      const record = sources.get(sourceOf(ip));
      const leftMs = record ? record.lockedUntil - clock.monotonic() : 0;
      return leftMs > 0 ? Math.max(1, Math.ceil(leftMs / 1000)) : 0;
    },
    failed(ip) {
      const source = sourceOf(ip);
      const now = clock.monotonic();
      const old = sources.get(source);
      if (old && old.lockedUntil > now) return false;
      const counts = old !== undefined && old.lockedUntil === 0 && now - old.since <= rule.windowMs;
      const record = counts ? old : { failures: 0, since: now, lockedUntil: 0 };
      record.failures += 1;
      if (record.failures >= rule.failures) record.lockedUntil = now + rule.lockMs;
      sources.delete(source); // put back at the young end
      sources.set(source, record);
      if (sources.size > rule.maxSources) {
        for (const oldest of sources.keys()) {
          sources.delete(oldest);
          break;
        }
      }
      return record.lockedUntil > 0;
    },
    succeeded(ip) {
      if (sources.size > 0) sources.delete(sourceOf(ip));
    },
    list() {
      const now = clock.monotonic();
      return [...sources].flatMap(([source, { failures, lockedUntil }]) =>
        lockedUntil > now ? [{ source, failures, leftMs: lockedUntil - now }] : [],
      );
    },
    clear(ip) {
      const source = sourceOf(ip.replace(/\/64$/, ""));
      const locked = (sources.get(source)?.lockedUntil ?? 0) > clock.monotonic();
      return locked && sources.delete(source);
    },
    get size() {
      return sources.size;
    },
  };
}
