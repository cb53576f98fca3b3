// What addresses that warm up have sent today, in memory: a message is counted when its attempt begins, and not any more
// where that reached no server. The store keeps the counts of ended attempts (with their outcome, in one transaction), from
// which a start goes on.
import type { Clock } from "../clock.ts";
import type { PoolAddress } from "../model/ip-pool.ts";
import type { WarmupCount, WarmupSend } from "../model/warmup.ts";
import type { Source } from "./sources.ts";
import { capOf, capsOf, dayOf, isWarming, providerOf, warmupDayOf } from "./warmup.ts";

/** A warm-up as it is today. */
export interface WarmupView {
  /** The first is 1. */
  day: number;
  startedAt: number;
  /** Messages that may be sent today, and that were sent, by provider. */
  caps: Record<string, number>;
  sentToday: Record<string, number>;
}

/** The cap of one address at one group of MX hosts. */
export interface WarmupCap {
  /** It has sent what it may today. */
  isReached(): boolean;
  /** Counts a message; null: the warm-up is over. */
  count(): WarmupSend | null;
}

export interface WarmupCounts {
  /** null: the address does not warm up, or the group is not counted. */
  capAt(source: Source, group: string): WarmupCap | null;
  /** The attempt reached no server. */
  takeBack(send: WarmupSend): void;
  /** null: the address does not warm up. */
  today(address: Pick<PoolAddress, "address" | "warmupStartedAt">): WarmupView | null;
  /** At the start: what was counted before it. */
  load(counts: readonly WarmupCount[]): void;
}

export function createWarmupCounts(clock: Clock): WarmupCounts {
  const sent = new Map<string, Map<string, number>>();
  let day = 0;

  /**
   * The counts of yesterday are dropped. A clock that is set back goes on with those of the later day, unless it was days
   * ahead: the caps would not begin again until that day.
   */
  const today = (): number => {
    const now = dayOf(clock.now());
    if (now > day || now < day - 1) {
      day = now;
      sent.clear();
    }
    return day;
  };
  const of = (address: string, provider: string): number => sent.get(address)?.get(provider) ?? 0;
  const add = ({ address, provider, day: on }: WarmupSend, by: number): void => {
    if (on !== today()) return;
    const counts = sent.get(address) ?? new Map<string, number>();
    counts.set(provider, Math.max(0, of(address, provider) + by));
    sent.set(address, counts);
  };

  return {
    capAt({ address, warmingSince: since }, group) {
      const provider = providerOf(group);
      if (address === null || since === null || provider === null) return null;
      const cap = (): number | null => capOf(provider, warmupDayOf(since, clock.now()));
      return {
        isReached() {
          today();
          return of(address, provider) >= (cap() ?? Infinity);
        },
        count() {
          if (cap() === null) return null;
          const send = { address, provider, day: today() };
          add(send, 1);
          return send;
        },
      };
    },
    takeBack: (send) => add(send, -1),
    today({ address, warmupStartedAt: startedAt }) {
      const now = clock.now();
      if (!isWarming(startedAt, now)) return null;
      today();
      const day = warmupDayOf(startedAt, now);
      const caps = capsOf(day);
      const sentToday = Object.fromEntries(
        Object.keys(caps).map((provider) => [provider, of(address, provider)]),
      );
      return { day, startedAt, caps, sentToday };
    },
    load(counts) {
      for (const { sent: by, ...send } of counts) add(send, by);
    },
  };
}
