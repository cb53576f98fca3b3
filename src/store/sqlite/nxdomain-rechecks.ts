// Addresses whose domain did not exist, until a second look at it. One an address: the first bounce is the one that
// the entry on the list will name.
import type { Database } from "better-sqlite3";
import type { NewSuppression, SecondLook } from "../../model/suppression.ts";

export interface SettledLooks {
  suppress: SecondLook[];
  drop: SecondLook[];
  later: SecondLook[];
  at: number;
  /** When those that are put off are due. */
  dueAt: number;
}

export function createSecondLookWrites(
  db: Database,
  addSuppression: (entry: NewSuppression, at: number) => unknown,
) {
  const insert = db.prepare(
    `INSERT INTO second_looks (account_key, canonical, domain, known_name, since, due_at, entry)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_key, canonical) DO NOTHING`,
  );
  const stands = db.prepare("SELECT 1 FROM accounts WHERE key = ? AND status <> 'deleted'");
  const remove = db.prepare("DELETE FROM second_looks WHERE account_key = ? AND canonical = ?");
  const putOff = db.prepare("UPDATE second_looks SET due_at = ? WHERE account_key = ? AND canonical = ?");

  return {
    askSecondLook({ domain, knownName, since, dueAt, entry }: SecondLook): void {
      const { accountKey, canonical } = entry;
      insert.run(accountKey, canonical, domain, knownName, since, dueAt, JSON.stringify(entry));
    },
    settleSecondLooks({ suppress, drop, later, at, dueAt }: SettledLooks): void {
      for (const { entry } of suppress) {
        remove.run(entry.accountKey, entry.canonical);
        if (stands.get(entry.accountKey)) addSuppression(entry, at);
      }
      for (const { entry } of drop) remove.run(entry.accountKey, entry.canonical);
      for (const { entry } of later) putOff.run(dueAt, entry.accountKey, entry.canonical);
    },
  };
}
