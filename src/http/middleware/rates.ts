// What a request costs: a token of its bucket, more where its body asks for more things, and of a day's messages. Which
// buckets there are: access/buckets.ts.
import type { Buckets, BucketState } from "../../access/buckets.ts";
import { quotasOf, refuseSpentQuotas } from "../../access/quotas.ts";
import { Refusal } from "../../errors.ts";
import { routeOf, sendsMail, type Exchange } from "../exchange.ts";
import type { Middleware } from "./types.ts";

export const chargeRequest: Middleware = (x, deps) => {
  if (x.principal?.kind === "operator") return;
  x.bucket = drawOn(x, deps.buckets);
  if (!x.bucket.allowed) refuseRate(x);
};

const isOpen = (x: Exchange): boolean => routeOf(x)?.scopes === "open";

/** Draws a token for a request: of its key's bucket, of its source's where it has no key. */
export function drawOn(x: Exchange, buckets: Buckets): BucketState {
  if (x.principal?.kind !== "key")
    return isOpen(x)
      ? buckets.takeSource("open", x.ip, routeOf(x)?.openTokens)
      : buckets.takeSource("unauthenticated", x.ip);
  return buckets.take(x.principal.key, x.principal.account, routeOf(x)?.bucket ?? "default");
}

/** The token of a request that turned out to cost none. */
export function refundToken(x: Exchange, buckets: Buckets): void {
  if (isOpen(x) && x.listener === "public")
    x.bucket = buckets.refundSource("open", x.ip, routeOf(x)?.openTokens);
  if (x.principal?.kind !== "key") return;
  x.bucket = buckets.refund(x.principal.key, x.principal.account, routeOf(x)?.bucket ?? "default");
}

export function refuseRate(x: Exchange, why?: string): never {
  throw emptyBucket(x.bucket, why);
}

export function emptyBucket(state: BucketState | null, why = "is empty"): Refusal {
  return new Refusal("rate_limit_exceeded", `The bucket ${state?.bucket ?? "default"} ${why}.`, {
    retry_after_seconds: state?.retryAfterSeconds ?? 1,
    bucket: state?.bucket ?? "default",
  });
}

/** Behind the replay, so that a client that lost the answer to the day's last message still gets it. */
export const refuseSpentQuota: Middleware = async (x, deps) => {
  if (x.principal?.kind !== "key" || !sendsMail(x)) return;
  const quotas = quotasOf(x.principal.account, x.principal.key);
  if (quotas.length > 0) await refuseSpentQuotas(deps.store, quotas, deps.clock.now());
};

/** The first token was drawn before the body was known: it is put back, so that a refusal costs none and says how long all of them take. */
export const chargeBatch: Middleware = (x, deps) => {
  const route = routeOf(x);
  if (x.principal?.kind !== "key" || !route?.tokens) return;
  const wanted = route.tokens(x.body);
  if (wanted < 2) return;
  refundToken(x, deps.buckets);
  const { key, account } = x.principal;
  x.bucket = deps.buckets.take(key, account, route.bucket, wanted);
  if (!x.bucket.allowed) refuseRate(x, "has too few tokens");
};
