// A sending pause. What is due of the account leaves the index of what waits the first time that a claim finds it, so
// that others' mail in the same scheduled queue is found without walking over it again; it is then leased to a holder of its account
// (held-mail.ts). What is not yet due stays where it waits, and is found by the same claim when its time has come. Released,
// it is due by the time since when it was held, and the held time is added up: it does not count towards the age at
// which mail is given up.
import type { Database, Statement } from "better-sqlite3";
import type { GuardBaseline } from "../../model/account.ts";
import type { AuditEntry } from "../../model/audit.ts";
import { everyone } from "../changes.ts";
import type { SendingPauseStore } from "../interface/sending-pause.ts";
import { accountOf, firstHolder, firstOperatorHolder, holderOf } from "./held-mail.ts";
import { noun, none, type Writing } from "./noun.ts";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { gt } from "drizzle-orm";
import { accounts } from "./schema/accounts.ts";

export function createHoldWrites(db: Database, recordAudit: (entry: AuditEntry) => unknown) {
  const pause = db.prepare(
    "UPDATE accounts SET paused_at = @at, pause_reason = @reason WHERE key = @accountKey AND paused_at IS NULL",
  );
  const resume = db.prepare(
    "UPDATE accounts SET paused_at = NULL, pause_reason = NULL, guarded = @guarded WHERE key = @accountKey AND paused_at IS NOT NULL",
  );
  const isPaused: Statement<[number], { n: number }> = db.prepare(
    "SELECT 1 AS n FROM accounts WHERE key = ? AND paused_at IS NOT NULL",
  );
  const longest: Statement<[string, number], { key: number; queueName: string; since: number }> = db.prepare(
    `SELECT key, queue_name AS queueName, held_since AS since FROM recipients INDEXED BY recipients_leased
     WHERE lease_owner = ? ORDER BY held_since LIMIT ?`,
  );
  const release = db.prepare(
    `UPDATE recipients SET due_at = held_since, held_ms = held_ms + max(0, @at - held_since), lease_owner = NULL, held_since = NULL
     WHERE key = @key`,
  );

  return {
    pauseAccount(arg: { accountKey: number; at: number; reason: string; audit: AuditEntry | null }): boolean {
      const { audit, ...change } = arg;
      if (pause.run(change).changes === 0) return false;
      if (audit) recordAudit(audit);
      return true;
    },
    resumeAccount(arg: { accountKey: number; guarded: GuardBaseline | null }): boolean {
      const guarded = arg.guarded && JSON.stringify(arg.guarded);
      return resume.run({ accountKey: arg.accountKey, guarded }).changes > 0;
    },
    releaseHeld(arg: { accountKey: number; at: number; limit: number }): {
      released: number;
      scheduledQueues: { queueName: string; dueAt: number }[];
    } {
      if (isPaused.get(arg.accountKey)) return { released: 0, scheduledQueues: [] };
      const rows = longest.all(holderOf(arg.accountKey), arg.limit);
      const scheduledQueues = new Map<string, number>();
      for (const { key, queueName, since } of rows) {
        release.run({ key, at: arg.at });
        if (!scheduledQueues.has(queueName)) scheduledQueues.set(queueName, since);
      }
      return {
        released: rows.length,
        scheduledQueues: [...scheduledQueues].map(([queueName, dueAt]) => ({ queueName, dueAt })),
      };
    },
  };
}

/** The look-ups by which a start, and each minute, finds what is to be held and what is to be released. */
export function createHoldViews(db: Database) {
  // One seek for each account with held mail.
  const nextHolder: Statement<[string], { holder: string }> = db.prepare(
    `SELECT lease_owner AS holder FROM recipients INDEXED BY recipients_leased
     WHERE lease_owner IS NOT NULL AND lease_owner > ? AND lease_owner < '${firstOperatorHolder}' ORDER BY lease_owner LIMIT 1`,
  );
  const paused = drizzle({ client: db }).select().from(accounts).where(gt(accounts.pausedAt, 0)).prepare();
  return {
    pausedAccounts: () => paused.all(),
    accountsOnHold(): number[] {
      const accounts: number[] = [];
      for (let next = nextHolder.get(firstHolder); next; next = nextHolder.get(next.holder))
        accounts.push(accountOf(next.holder));
      return accounts;
    },
  };
}

export const sendingPause = noun({
  commands: (db: Database, { audit }: Writing) => createHoldWrites(db, (entry) => audit.record(entry)),
  touches: {
    pauseAccount: (touch) => touch(everyone, "accounts"),
    resumeAccount: (touch) => touch(everyone, "accounts"),
    releaseHeld: (touch, { accountKey }) => touch(accountKey, "messages"),
  },
  lookups: createHoldViews,
  lists: none,
  calls: ({ write, lookups }): SendingPauseStore => ({
    pauseAccount: (accountKey, at, reason, audit = null) =>
      write.pauseAccount({ accountKey, at, reason, audit }),
    resumeAccount: (accountKey, guarded) => write.resumeAccount({ accountKey, guarded }),
    pausedAccounts: async () => lookups.pausedAccounts(),
    accountsOnHold: async () => lookups.accountsOnHold(),
    releaseHeld: (accountKey, at, limit) => write.releaseHeld({ accountKey, at, limit }),
  }),
});
