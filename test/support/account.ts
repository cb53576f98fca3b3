// An account as the store gives it, with what a test cares about replaced.
import type { Account } from "../../src/model/account.ts";

export function newAccount(wishes: Partial<Account> = {}): Account {
  return {
    key: 1,
    id: "acct_1",
    name: "default",
    status: "active",
    createdAt: 0,
    pausedAt: null,
    pauseReason: null,
    guarded: null,
    rates: {},
    limits: {},
    dailyQuota: null,
    ...wishes,
  };
}
