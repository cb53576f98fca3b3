// An account: whose keys, domains, mail and events are kept apart from those of the others. Two always exist: the
// default one, which needs no name where there is only one, and the one that sends the appliance's own notices.
import type { AccountLimits, Limits, LimitsChange } from "./limits.ts";

export const defaultAccount = "default";
/** Sends mail about the appliance itself: it has no webhooks and no key. */
export const operationsAccount = "operations";

/** Between these the operator changes an account. */
export const liveAccountStatuses = ["active", "suspended"] as const;
export type LiveAccountStatus = (typeof liveAccountStatuses)[number];
export const accountStatuses = [...liveAccountStatuses, "deleted"] as const;
export type AccountStatus = (typeof accountStatuses)[number];

export interface Account extends Limits {
  key: number;
  /** What it may have of things that it makes itself. */
  limits: AccountLimits;
  id: string; // acct_…
  name: string;
  /** The row of a deleted account stays, since what it sent outlives it: its row id is never given again. */
  status: AccountStatus;
  createdAt: number;
  /** Sending is paused since then: what is due is held, and nothing new is accepted. */
  pausedAt: number | null;
  /** As the operator reads it. */
  pauseReason: string | null;
  /** What the abuse guard had counted when the account was last resumed; it counts on from there. */
  guarded: GuardBaseline | null;
}

export type AccountChange = {
  status?: LiveAccountStatus;
  limits?: Record<string, number | null>;
} & LimitsChange;

/** The figures from `from` on, as they stood at a resume. */
export interface GuardBaseline {
  from: number;
  delivered: number;
  bounced: number;
  bouncedHard: number;
  complained: number;
}
