// Statistics by name: what rows are about, how they are asked for, and how long they are kept: quarters of an hour for
// 90 days, so that the days of every time zone are exact so far back, and UTC days for 400, so that a year can be laid
// beside the one before.
import type { MailFacts } from "./facts.ts";

/** Counts are kept by quarters of an hour: every time zone's day begins with one of them. */
export const quarterMs = 15 * 60 * 1000;
export const quartersKeptDays = 90;
export const daysKept = 400;

/** What rows are about; the numbers are stored. */
export const statsKinds = {
  account: 0,
  tag: 1,
  domain: 2,
  ipPool: 3,
  ip: 4,
  provider: 5,
  recipientDomain: 6,
  bounce: 7,
  webhook: 8,
} as const;
export type StatsKind = keyof typeof statsKinds;

/** Within what rows of a kind are counted: all of the account, one sending domain, one pool; the numbers are stored. */
export const statsScopes = { all: 0, domain: 1, ipPool: 2 } as const;
export type StatsScope = keyof typeof statsScopes;

/** One row of the statistics: an account, or one tag, domain, pool, address, … of it. */
export interface StatsOf {
  accountKey: number;
  test: boolean;
  kind: StatsKind;
  /** Of the kind `account`: empty. */
  key: string;
}

/** A list of the statistics: every tag, say, of an account, or of what one sending domain or one pool sent. */
export interface StatsListOf {
  accountKey: number;
  test: boolean;
  kind: Exclude<StatsKind, "account">;
  scope: { of: StatsScope; key: string };
}

/** Recipients that were refused because they are suppressed. */
export interface Rejection extends Pick<MailFacts, "accountKey" | "test" | "domain" | "pool" | "tagsJson"> {
  recipientDomains: string[];
  at: number;
}
