// What a send of a paused account meets at both doors: 403 account_paused, 451 4.7.1. Whether an account is paused is
// read with the account at every request; why, and until when, is the guard's (care/guard.ts).
import { Refusal } from "../errors.ts";
import type { NotSending } from "../model/acceptance.ts";
import type { Account } from "../model/account.ts";

/** Throws Refusal: account_paused. */
export function refusePaused(account: Account): void {
  if (account.pausedAt !== null) throw pausedRefusal(account.name, account.pauseReason);
}

/** For mail whose account was paused, suspended or deleted while it was being submitted; nothing of it is kept. */
export function notSendingRefusal({ account, status, pauseReason }: NotSending): Refusal {
  if (status === "active") return pausedRefusal(account, pauseReason);
  return new Refusal("key_disabled", `The account of this mail is ${status}; the mail is not accepted`);
}

function pausedRefusal(name: string, reason: string | null): Refusal {
  return new Refusal(
    "account_paused",
    `Sending is paused: ${reason ?? "the operator knows why"}. The operator ends that with: svc accounts resume ${name}`,
  );
}
