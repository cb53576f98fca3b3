// The operator's mail when the abuse guard paused an account: why, what the pause does, and how to end it.
import type { Account } from "../model/account.ts";
import type { Notices } from "./notices.ts";

/** One mail a pause, `at` its beginning. */
export async function notifyAccountPaused(
  notices: Pick<Notices, "notify">,
  { id, name }: Pick<Account, "id" | "name">,
  reason: string,
  at: number,
): Promise<void> {
  await notices.notify(
    `account_paused:${id}:${at}`,
    `sending of the account ${name} is paused`,
    `Sending of the account ${name} is paused: ${reason}.\n\n` +
      `Its queued mail is held: it is not sent and does not expire. A send is refused with 403 account_paused, ` +
      `by SMTP with 451 4.7.1. Other accounts are not affected.\n\n` +
      `What to do: look at what bounced with: svc events list --account ${name} --event message.bounced\n` +
      `If a key was stolen: svc keys revoke, svc smtp-credentials revoke. To cancel mail: svc messages cancel\n` +
      `Once the cause is removed: svc accounts resume ${name}\n`,
  );
}
