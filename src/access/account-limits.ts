// The limits of an account: how many resources its keys may create, and its share of what all accounts use; one table.
// The store enforces them in the transaction of the write, so that concurrent requests cannot exceed one; the texts are
// here. The operator raises a limit with `svc accounts set NAME --limit webhooks=200` and is not bound by the counts.
import { Refusal } from "../errors.ts";
import type { Account } from "../model/account.ts";
import type { AccountLimits, QueueShare } from "../model/limits.ts";
import { LimitReached } from "../store/store.ts";

export const accountLimits = {
  webhooks: { most: 50, of: "webhook endpoints" },
  domains: { most: 1000, of: "domains" },
  /** Those of the system (bounces, complaints, unsubscribes) are not counted and never refused. */
  suppressions: { most: 5_000_000, of: "suppressions that were added by hand" },
  ip_pools: { most: 100, of: "IP pools" },
  ip_addresses: { most: 256, of: "addresses in its IP pools" },
  /** null: half of what the other accounts leave; all of it for the only account. */
  queue: { most: null, of: "unsent recipients" },
  queue_mb: { most: null, of: "megabytes of unsent content" },
} as const satisfies Record<string, { most: number | null; of: string }>;

export type LimitName = keyof typeof accountLimits;
export type CountLimit = {
  [N in LimitName]: (typeof accountLimits)[N]["most"] extends number ? N : never;
}[LimitName];

export const limitNames = Object.keys(accountLimits) as LimitName[];
const megabyte = 1_000_000;

/** The limits that apply to an account. */
export function limitsOf({ limits }: Pick<Account, "limits">): Record<LimitName, number | null> {
  const own = limitNames.map((name) => [name, limits[name] ?? accountLimits[name].most]);
  return Object.fromEntries(own) as Record<LimitName, number | null>;
}

/** How many of a thing the account may have. */
export function mostOf(limits: AccountLimits, name: CountLimit): number {
  return limits[name] ?? accountLimits[name].most;
}

export interface Share extends QueueShare {
  /** Of whom, by name. */
  account: string;
}

/** What of the queue and the disk the account may fill with unsent mail. */
export function shareOf({ name, limits }: Pick<Account, "name" | "limits">): Share {
  const { queue_mb: megabytes } = limits;
  return {
    account: name,
    recipients: limits["queue"] ?? null,
    bytes: megabytes === undefined ? null : megabytes * megabyte,
  };
}

/** Runs a write that is subject to an account's limit. Throws Refusal conflict. */
export async function withinLimit<T>(
  account: Pick<Account, "name" | "limits">,
  name: CountLimit,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof LimitReached) throw limitRefusal(account, name, error.has);
    throw error;
  }
}

/** `has`: how many it has. */
export function limitRefusal(
  account: Pick<Account, "name" | "limits">,
  name: CountLimit,
  has: number,
): Refusal {
  const most = mostOf(account.limits, name);
  return new Refusal(
    "conflict",
    `The account ${account.name} has ${has} ${accountLimits[name].of}, and may have at most ${most}. ` +
      `Delete some, or ask the operator to raise the limit: svc accounts set ${account.name} --limit ${name}=${most * 2}`,
  );
}

/** The refusal for an account whose share of the queue or the disk is used up. */
export function shareWords(account: string, of: keyof QueueShare, most: number): string {
  if (of === "recipients")
    return (
      `the account ${account} has used its share of the queue, ${most} unsent recipients (at most half of what the other accounts leave of limits.max_queue, ` +
      `or what svc accounts set ${account} --limit queue=N gives it); wait until some are sent`
    );
  return (
    `the account ${account} has used its share of the disk, ${Math.floor(most / megabyte)} MB of unsent content (at most half of what the other accounts leave free, ` +
    `or what svc accounts set ${account} --limit queue_mb=N gives it); wait until some are sent`
  );
}
