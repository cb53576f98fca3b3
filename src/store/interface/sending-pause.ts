// The calls of a sending pause: an account is paused and resumed, and its held mail is released.
import type { Account, GuardBaseline } from "../../model/account.ts";
import type { AuditEntry } from "../../model/audit.ts";

export interface SendingPauseStore {
  /** From now on a claim holds the account's due mail. `audit` is written with it. False: it is paused already, or there is none. */
  pauseAccount(accountKey: number, at: number, reason: string, audit?: AuditEntry | null): Promise<boolean>;
  /** Ends the pause; held mail stays held until it is released. False: it was not paused. */
  resumeAccount(accountKey: number, guarded: GuardBaseline | null): Promise<boolean>;
  pausedAccounts(): Promise<Account[]>;
  /** Accounts with held mail. */
  accountsOnHold(): Promise<number[]>;
  /** Releases up to `limit` held recipients, the longest held first, unless the account is paused; answers how many, and their scheduled queues. */
  releaseHeld(
    accountKey: number,
    at: number,
    limit: number,
  ): Promise<{ released: number; scheduledQueues: { queueName: string; dueAt: number }[] }>;
}
