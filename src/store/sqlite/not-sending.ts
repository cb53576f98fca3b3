// Whether an account may send, as the transaction of an acceptance sees it: it may have been paused, suspended or deleted
// while the content was on its way. One look by row id. The words of the refusal are sending-pause/refusals.ts's.
import type { Database, Statement } from "better-sqlite3";
import type { NotSending } from "../../model/acceptance.ts";

/** null: it may send. */
export function createNotSending(db: Database): (accountKey: number) => NotSending | null {
  const find: Statement<[number], Omit<NotSending, "kind">> = db.prepare(
    `SELECT name AS account, status, paused_at AS pausedAt, pause_reason AS pauseReason FROM accounts
     WHERE key = ? AND (paused_at IS NOT NULL OR status <> 'active')`,
  );
  return (accountKey) => {
    const row = find.get(accountKey);
    return row ? { kind: "not_sending", ...row } : null;
  };
}
