// How much processor time an account's readings may take: of the parsing thread, and of the event loop, which encrypts and
// sends what they show. A burst is free, so that nobody who reads a few large messages waits; an account that reads
// them in a loop gets its share of one processor.
import type { Clock } from "../clock.ts";
import type { Owner } from "../fairness.ts";

export const processorTime = { burstMs: 1_000, share: 1 / 4 };

/** What the event loop needs to send so many octets, its garbage included, milliseconds. */
export const sendingMs = (octets: number): number => octets / 50_000;

export interface ProcessorTime {
  /** Resolves once the account has time left. */
  turn(account: Owner): Promise<void>;
  spent(account: Owner, ms: number): void;
}

export function createProcessorTime(clock: Clock, { burstMs, share } = processorTime): ProcessorTime {
  /** Monotonic milliseconds at which an account has its whole burst again; of those that do not have it. */
  const wholeAt = new Map<Owner, number>();
  return {
    turn(account) {
      const at = wholeAt.get(account);
      if (at === undefined) return Promise.resolve();
      const waitMs = at - clock.monotonic() - burstMs / share;
      return waitMs <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.after(waitMs, resolve));
    },
    spent(account, ms) {
      const now = clock.monotonic();
      for (const [other, at] of wholeAt) if (at <= now) wholeAt.delete(other);
      wholeAt.set(account, Math.max(now, wholeAt.get(account) ?? 0) + ms / share);
    },
  };
}
