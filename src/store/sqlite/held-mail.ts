// Mail of accounts whose sending is paused. What is due of it leaves the index of what waits the first time that a
// claim comes upon it, so that others' mail in the same lane is found without walking over it again; it is then leased
// to a holder of its account, which no boot takes back. What is not yet due stays where it waits, and comes upon the
// same claim when its time has come. `lease_until` is since when a row is held. Released, it is due by that time, and
// the time on hold is added up: it does not count towards the age at which mail is given up.
import type { Database, Statement } from "better-sqlite3";
import type { GuardBaseline } from "../../model/account.ts";
import type { AuditEntry } from "../../model/audit.ts";

/** Sorts behind the owner of every boot, so that each kind is one stretch of the index of leases. */
export const firstHolder = "~hold:";
export const holderOf = (accountKey: number): string => `${firstHolder}${accountKey}`;
const accountOf = (holder: string): number => Number(holder.slice(firstHolder.length));

/** SQL over a row of `recipients`: in an attempt's hands, or a holder's. */
export const isLeased = `(lease_owner < '${firstHolder}')`;
export const isHeld = `(lease_owner >= '${firstHolder}')`;

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
  const longest: Statement<[string, number], { key: number; lane: string; since: number }> = db.prepare(
    `SELECT key, lane, lease_until AS since FROM recipients INDEXED BY recipients_leased
     WHERE lease_owner = ? ORDER BY lease_until LIMIT ?`,
  );
  const release = db.prepare(
    `UPDATE recipients SET due_at = lease_until, held_ms = held_ms + max(0, @at - lease_until), lease_owner = NULL, lease_until = NULL
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
      lanes: { lane: string; dueAt: number }[];
    } {
      if (isPaused.get(arg.accountKey)) return { released: 0, lanes: [] };
      const rows = longest.all(holderOf(arg.accountKey), arg.limit);
      const lanes = new Map<string, number>();
      for (const { key, lane, since } of rows) {
        release.run({ key, at: arg.at });
        if (!lanes.has(lane)) lanes.set(lane, since);
      }
      return { released: rows.length, lanes: [...lanes].map(([lane, dueAt]) => ({ lane, dueAt })) };
    },
  };
}

/** The look-ups by which a start, and each minute, finds what is to be held and what is to be released. */
export function createHoldViews(db: Database) {
  // One seek an account that has something on hold.
  const nextHolder: Statement<[string], { holder: string }> = db.prepare(
    `SELECT lease_owner AS holder FROM recipients INDEXED BY recipients_leased
     WHERE lease_owner IS NOT NULL AND lease_owner > ? ORDER BY lease_owner LIMIT 1`,
  );
  return {
    accountsOnHold(): number[] {
      const accounts: number[] = [];
      for (let next = nextHolder.get(firstHolder); next; next = nextHolder.get(next.holder))
        accounts.push(accountOf(next.holder));
      return accounts;
    },
  };
}
