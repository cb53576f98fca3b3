// What binds an API key or an account: token buckets (rates), the daily quota, and how many things an account may
// have. The defaults and what each limit means: access/buckets.ts and access/account-limits.ts.

/** Token buckets, by name; their rates: access/buckets.ts; limits of each: docs/accounts.md. */
export const bucketNames = [
  "messages-write",
  "messages-read",
  "suppressions-write",
  "suppressions-list",
  "suppressions-read",
  "suppressions-delete",
  "events-read",
  "stats-read",
  "webhooks-write",
  "default",
  "account",
  "unauthenticated",
  "open",
] as const;
export type BucketName = (typeof bucketNames)[number];

/** Burst and refill of a rate bucket. */
export interface Rate {
  burst: number;
  perSecond: number;
}
/** By the bucket's name: what differs from the default rates. */
export type Rates = Record<string, Rate>;

export interface Limits {
  rates: Rates;
  /** Messages accepted in one day (UTC); null: no limit. */
  dailyQuota: number | null;
}
/** By the limit's name (access/account-limits.ts): what differs from the default limits. */
export type AccountLimits = Record<string, number>;
/** A bucket that is null goes back to the default rate. */
export interface LimitsChange {
  rates?: Record<string, Rate | null>;
  dailyQuota?: number | null;
}

/** What one account may have unsent. */
export interface QueueShare {
  /** In place of half of what the others leave; null: that half. */
  recipients: number | null;
  bytes: number | null;
}

/** How many messages a key or an account may have accepted in a day of UTC. `owner`: its row id. */
export interface Quota {
  kind: "key" | "account";
  owner: number;
  limit: number;
}
