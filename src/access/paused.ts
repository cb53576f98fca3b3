// What a send of a paused account meets at both doors: 403 account_paused, 451 4.7.1. Whether an account is paused is
// read with the account at every request; why, and until when, is the guard's (care/guard.ts).
import { Refusal } from "../errors.ts";
import type { Account } from "../store/store.ts";

/** Throws Refusal: account_paused. */
export function refusePaused({ name, pausedAt, pauseReason }: Account): void {
  if (pausedAt === null) return;
  throw new Refusal(
    "account_paused",
    `Sending is paused: ${pauseReason ?? "the operator knows why"}. The operator ends that with: svc accounts resume ${name}`,
  );
}
