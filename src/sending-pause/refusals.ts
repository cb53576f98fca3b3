// Whether an account may send now, and the refusal where it may not: the one answer for HTTP (403 account_paused) and
// SMTP (451 4.7.1). The pause is read with the account at every request. An account can also be paused, suspended or
// deleted between that request and the commit: the store then refuses (store/not-sending.ts), with the words from here.
import { Refusal } from "../errors.ts";
import type { NotSending } from "../model/acceptance.ts";
import type { Account } from "../model/account.ts";

/** Throws Refusal: account_paused. */
export function refusePausedAccount(account: Account): void {
  if (account.pausedAt !== null) throw pausedRefusal(account.name, account.pauseReason);
}

/** For mail whose account was paused, suspended or deleted while it was being submitted. Nothing of the mail is kept. */
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
