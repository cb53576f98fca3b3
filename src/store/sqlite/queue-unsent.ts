// What each account has unsent when the writer starts: recipients and bytes of content, read from the two indexes of the
// queue alone. A scheduled queue begins with its account's key (queue/queue-name.ts), and held mail names it in its holder, so an
// account is one stretch of either index. Scheduled queues of no account (mail of test keys) and what was in an attempt's hands are
// few, and their rows are looked at.
import type { Database, Statement } from "better-sqlite3";
import { firstHolder, holderOf, operatorHolderOf } from "./held-mail.ts";
import type { Usage } from "../batch-counters.ts";

/** Behind every scheduled queue that begins with a digit. */
const behindAccounts = ":";

export function* countUnsent(db: Database): Generator<[accountKey: number, usage: Usage]> {
  const accounts: Statement<[], { key: number }> = db.prepare("SELECT key FROM accounts");
  const usage = "count(*) AS recipients, CAST(total(share_bytes) AS INTEGER) AS bytes";
  const waiting: Statement<[string, string], Usage> = db.prepare(
    `SELECT ${usage} FROM recipients INDEXED BY recipients_waiting WHERE due_at IS NOT NULL AND queue_name >= ? AND queue_name < ?`,
  );
  const held: Statement<[string], Usage> = db.prepare(
    `SELECT ${usage} FROM recipients INDEXED BY recipients_leased WHERE lease_owner = ?`,
  );
  const others: Statement<[], Usage & { accountKey: number }>[] = [
    `INDEXED BY recipients_waiting WHERE due_at IS NOT NULL AND queue_name >= '${behindAccounts}'`,
    `INDEXED BY recipients_leased WHERE lease_owner < '${firstHolder}'`,
  ].map((rows) =>
    db.prepare(`SELECT account_key AS accountKey, ${usage} FROM recipients ${rows} GROUP BY account_key`),
  );
  for (const { key } of accounts.all()) {
    for (const found of [
      waiting.get(`${key}.`, `${key}/`),
      held.get(holderOf(key)),
      held.get(operatorHolderOf(key)),
    ]) {
      if (found && found.recipients > 0) yield [key, found];
    }
  }
  for (const statement of others)
    for (const { accountKey, ...found } of statement.all()) yield [accountKey, found];
}
