// Rate limits: a token bucket per key and bucket, one per account and bucket above it, and one per
// source address for requests without a valid key and one for open routes. Refill is continuous on the monotonic clock. The
// table is also that of docs/accounts.md; `limits.rates` of the configuration stands above it, an account's
// rates above that, a key's above all. A changed rate applies from the next request; spent tokens stay spent.
// A bucket that is full again is the same as none, so it is forgotten: memory is bounded.
import type { Clock } from "../clock.ts";
import type { BucketName, Rate, Rates } from "../model/limits.ts";
import { sourceOf } from "../model/ip-source.ts";

export const rateTable = {
  "messages-write": { burst: 200, perSecond: 200 },
  "messages-read": { burst: 100, perSecond: 50 },
  "suppressions-write": { burst: 30, perSecond: 10 },
  "suppressions-list": { burst: 60, perSecond: 30 },
  "suppressions-read": { burst: 200, perSecond: 100 },
  "suppressions-delete": { burst: 30, perSecond: 10 },
  "events-read": { burst: 30, perSecond: 10 },
  "stats-read": { burst: 20, perSecond: 5 },
  "webhooks-write": { burst: 10, perSecond: 1 },
  default: { burst: 100, perSecond: 30 },
  /** All keys of one account together, for each bucket. */
  account: { burst: 1000, perSecond: 1000 },
  /** One source address without a valid key. */
  unauthenticated: { burst: 100, perSecond: 30 },
  /** One source address at the routes that need no key: health, the descriptions, the pages of the errors. */
  open: { burst: 100, perSecond: 30 },
} satisfies Record<BucketName, Rate>;

/** Buckets that a route may draw on. */
export type RouteBucket = Exclude<BucketName, "account" | SourceBucket>;
/** Those of a source address. */
export type SourceBucket = "unauthenticated" | "open";

/** Those of a route: what may be raised for one key. */
export const routeBuckets = Object.keys(rateTable).filter(
  (name): name is RouteBucket => name !== "account" && name !== "unauthenticated" && name !== "open",
);
/** What may be raised for one account. */
export const accountBuckets = [...routeBuckets, "account"] as const;

export interface BucketState {
  allowed: boolean;
  /** `quota`: the messages of a day (quotas.ts). */
  bucket: BucketName | "quota";
  /** Burst capacity. */
  limit: number;
  /** Whole tokens left. */
  remaining: number;
  /** Epoch seconds when the bucket is full again. */
  resetAt: number;
  /** Until there are enough tokens, at least 1. */
  retryAfterSeconds: number;
}

/** A key or account whose requests are limited: its row id and the rates that were raised for it. */
export interface RateLimitSubject {
  key: number;
  rates: Rates;
}

export interface Buckets {
  /** Takes tokens (1) of the key's bucket and of its account's; takes none where either has fewer. */
  take(key: RateLimitSubject, account: RateLimitSubject, bucket: RouteBucket, tokens?: number): BucketState;
  /** Puts back a token that `take` took. */
  refund(key: RateLimitSubject, account: RateLimitSubject, bucket: RouteBucket): BucketState;
  /** Takes tokens (1) of a source address; at most the bucket's burst. */
  takeSource(bucket: SourceBucket, ip: string, tokens?: number): BucketState;
  /** Puts back the tokens that `takeSource` took. */
  refundSource(bucket: SourceBucket, ip: string, tokens?: number): BucketState;
  /** How many buckets are remembered. */
  readonly size: number;
}

interface Level {
  tokens: number;
  at: number;
  rate: Rate;
}

const maxLevels = 200_000;
const sweepEvery = 10_000;

export function createBuckets(clock: Clock, overrides: Record<string, Rate> = {}): Buckets {
  const rates: Record<BucketName, Rate> = { ...rateTable, ...overrides };
  const levels = new Map<string, Level>();
  let untilSweep = sweepEvery;

  const level = (id: string, rate: Rate): Level => {
    const now = clock.monotonic();
    const old = levels.get(id);
    if (!old) return { tokens: rate.burst, at: now, rate };
    const { burst, perSecond } = old.rate;
    old.tokens = Math.min(burst, old.tokens + ((now - old.at) / 1000) * perSecond);
    old.at = now;
    if (burst !== rate.burst || perSecond !== rate.perSecond) {
      old.tokens = Math.max(0, old.tokens + rate.burst - burst);
      old.rate = rate;
    }
    return old;
  };
  const ownLevel = (
    id: string,
    key: RateLimitSubject,
    account: RateLimitSubject,
    bucket: RouteBucket,
  ): Level => level(id, key.rates[bucket] ?? account.rates[bucket] ?? rates[bucket]);
  const sharedLevel = (id: string, account: RateLimitSubject): Level =>
    level(id, account.rates["account"] ?? rates.account);
  const draw = (id: string, from: Level, tokens = 1): void => {
    from.tokens -= tokens;
    levels.delete(id); // the young end is where it was last used
    levels.set(id, from);
    if (--untilSweep > 0) return;
    untilSweep = sweepEvery;
    for (const [other, { tokens, at, rate }] of levels) {
      const full = tokens + ((from.at - at) / 1000) * rate.perSecond >= rate.burst;
      if (full || levels.size > maxLevels) levels.delete(other);
    }
  };
  const state = (from: Level, bucket: BucketName, allowed: boolean, wanted = 1): BucketState => ({
    allowed,
    bucket,
    limit: from.rate.burst,
    remaining: Math.max(0, Math.floor(from.tokens)),
    resetAt: Math.ceil(clock.now() / 1000 + (from.rate.burst - from.tokens) / from.rate.perSecond),
    retryAfterSeconds: Math.max(1, Math.ceil((wanted - from.tokens) / from.rate.perSecond)),
  });

  return {
    take(key, account, bucket, tokens = 1) {
      const ownId = `k${key.key}:${bucket}`;
      const sharedId = `a${account.key}:${bucket}`;
      const own = ownLevel(ownId, key, account, bucket);
      const shared = sharedLevel(sharedId, account);
      if (own.tokens < tokens) return state(own, bucket, false, tokens);
      if (shared.tokens < tokens) return state(shared, "account", false, tokens);
      draw(ownId, own, tokens);
      draw(sharedId, shared, tokens);
      return state(own, bucket, true);
    },
    refund(key, account, bucket) {
      const own = ownLevel(`k${key.key}:${bucket}`, key, account, bucket);
      for (const from of [own, sharedLevel(`a${account.key}:${bucket}`, account)])
        from.tokens = Math.min(from.rate.burst, from.tokens + 1);
      return state(own, bucket, true);
    },
    takeSource(bucket, ip, wanted = 1) {
      const id = `${bucket}:${sourceOf(ip)}`;
      const own = level(id, rates[bucket]);
      const tokens = Math.min(wanted, own.rate.burst);
      if (own.tokens < tokens) return state(own, bucket, false, tokens);
      draw(id, own, tokens);
      return state(own, bucket, true);
    },
    refundSource(bucket, ip, tokens = 1) {
      const own = level(`${bucket}:${sourceOf(ip)}`, rates[bucket]);
      own.tokens = Math.min(own.rate.burst, own.tokens + tokens);
      return state(own, bucket, true);
    },
    get size() {
      return levels.size;
    },
  };
}
