// The calls of a sending pause: an account is paused and resumed, and what is on hold meanwhile is released.
import type { Account, GuardBaseline } from "../../model/account.ts";
import type { AuditEntry } from "../../model/audit.ts";

export interface SendingPauseStore {
  /** From now on a claim puts what is due of the account on hold. `audit` is written with it. False: it is paused already, or there is none. */
  pauseAccount(accountKey: number, at: number, reason: string, audit?: AuditEntry | null): Promise<boolean>;
  /** Ends the pause; what is on hold stays there until it is released. False: it was not paused. */
  resumeAccount(accountKey: number, guarded: GuardBaseline | null): Promise<boolean>;
  pausedAccounts(): Promise<Account[]>;
  /** Accounts of whose mail something is on hold. */
  accountsOnHold(): Promise<number[]>;
  /** Puts up to `limit` of what is on hold, the longest held first, back in line, unless the account is paused: how many, and their scheduled queues. */
  releaseHeld(
    accountKey: number,
    at: number,
    limit: number,
  ): Promise<{ released: number; scheduledQueues: { queueName: string; dueAt: number }[] }>;
}
