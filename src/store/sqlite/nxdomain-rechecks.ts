// Addresses whose domain did not exist, until a second look at it. One an address: the first bounce is the one that
// the entry on the list will name.
import type { Database, Statement } from "better-sqlite3";
import type { NewSuppression, SecondLook } from "../../model/suppression.ts";
import type { NxdomainRecheckStore } from "../interface/nxdomain-rechecks.ts";
import { none, noun, type Writing } from "./noun.ts";

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

/** As many of the newest recipients are looked through for domains that took mail. */
const newestRecipients = 1000;

function createRecheckLists(db: Database) {
  const looksDue: Statement<[number, number], Omit<SecondLook, "entry"> & { entry: string }> = db.prepare(
    `SELECT domain, known_name AS knownName, since, due_at AS dueAt, entry FROM second_looks
     WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
  );
  const delivered: Statement<[number, number], { domain: string }> = db.prepare(
    `SELECT r.domain FROM recipients r CROSS JOIN messages m ON m.key = r.message_key AND m.test = 0
     WHERE r.key > (SELECT max(key) FROM recipients) - ? AND r.state = 'delivered' GROUP BY r.domain LIMIT ?`,
  );
  return {
    secondLooksDue: (arg: { now: number; limit: number }): SecondLook[] =>
      looksDue
        .all(arg.now, arg.limit)
        .map((row) => ({ ...row, entry: JSON.parse(row.entry) as NewSuppression })),
    domainsDelivered: (arg: { limit: number }): string[] =>
      delivered.all(newestRecipients, arg.limit).map(({ domain }) => domain),
  };
}

export const nxdomainRechecks = noun({
  commands(db: Database, { addSuppression }: Writing) {
    const { settleSecondLooks } = createSecondLookWrites(db, addSuppression);
    return { settleSecondLooks };
  },
  touches: {
    settleSecondLooks(touch, { suppress, at }) {
      for (const { entry } of suppress) touch(entry.accountKey, "suppressions", at);
    },
  },
  lookups: none,
  lists: createRecheckLists,
  calls: ({ write, lists }): NxdomainRecheckStore => ({
    secondLooksDue: (now, limit) => lists.secondLooksDue({ now, limit }),
    settleSecondLooks: (looks) => write.settleSecondLooks(looks),
    domainsDelivered: (limit) => lists.domainsDelivered({ limit }),
  }),
});
