// Daily quotas: how many messages a key, and all of an account, may have accepted in a day of UTC, over REST and SMTP.
// The store enforces them in the transaction of the acceptance (store/sqlite/quotas.ts); a quota that is used up is refused
// before the body is read. The operator's own sends have none.
import { dayMs } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { Account } from "../model/account.ts";
import type { ApiKey } from "../model/api-key.ts";
import type { Quota } from "../model/limits.ts";
import type { Store } from "../store/store.ts";
import type { BucketState } from "./buckets.ts";

/** `rate_limit_exceeded` until the day is over. */
export class OverQuota extends Refusal {
  readonly state: BucketState;
  constructor({ kind, limit }: Quota, now: number) {
    const resetMs = (Math.floor(now / dayMs) + 1) * dayMs;
    const retryAfterSeconds = Math.max(1, Math.ceil((resetMs - now) / 1000));
    super(
      "rate_limit_exceeded",
      `The daily quota of the ${kind}, ${limit} messages, does not allow this request; it resets at 00:00 UTC.`,
      { bucket: "quota", retry_after_seconds: retryAfterSeconds },
    );
    this.name = "OverQuota";
    const resetAt = resetMs / 1000;
    this.state = { allowed: false, bucket: "quota", limit, remaining: 0, resetAt, retryAfterSeconds };
  }
}

/** The quotas under which a key sends; null: a login of the account. */
export function quotasOf(account: Account, key: ApiKey | null): Quota[] {
  const quotas: Quota[] = [];
  if (key !== null && key.dailyQuota !== null)
    quotas.push({ kind: "key", owner: key.key, limit: key.dailyQuota });
  if (account.dailyQuota !== null)
    quotas.push({ kind: "account", owner: account.key, limit: account.dailyQuota });
  return quotas;
}

/** Throws OverQuota if not one more message would be accepted. */
export async function refuseSpentQuotas(
  store: Pick<Store, "spentQuota">,
  quotas: Quota[],
  now: number,
): Promise<void> {
  const spent = await store.spentQuota(quotas, now);
  if (spent) throw new OverQuota(spent, now);
}
