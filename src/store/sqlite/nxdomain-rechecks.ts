// Addresses whose domain did not exist, until the recheck. One an address: the first bounce is the one that
// the entry on the list will name.
import type { Database, Statement } from "better-sqlite3";
import type { NewSuppression, NxdomainRecheck } from "../../model/suppression.ts";
import type { NxdomainRecheckStore } from "../interface/nxdomain-rechecks.ts";
import { none, noun, type Writing } from "./noun.ts";

export interface SettledRechecks {
  suppress: NxdomainRecheck[];
  drop: NxdomainRecheck[];
  later: NxdomainRecheck[];
  at: number;
  /** When those that are put off are due. */
  dueAt: number;
}

export function createNxdomainRecheckWrites(
  db: Database,
  addSuppression: (entry: NewSuppression, at: number) => unknown,
) {
  const insert = db.prepare(
    `INSERT INTO nxdomain_rechecks (account_key, canonical, domain, known_name, since, due_at, entry)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_key, canonical) DO NOTHING`,
  );
  const stands = db.prepare("SELECT 1 FROM accounts WHERE key = ? AND status <> 'deleted'");
  const remove = db.prepare("DELETE FROM nxdomain_rechecks WHERE account_key = ? AND canonical = ?");
  const putOff = db.prepare(
    "UPDATE nxdomain_rechecks SET due_at = ? WHERE account_key = ? AND canonical = ?",
  );

  return {
    addNxdomainRecheck({ domain, knownName, since, dueAt, entry }: NxdomainRecheck): void {
      const { accountKey, canonical } = entry;
      insert.run(accountKey, canonical, domain, knownName, since, dueAt, JSON.stringify(entry));
    },
    settleNxdomainRechecks({ suppress, drop, later, at, dueAt }: SettledRechecks): void {
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
  const rechecksDue: Statement<[number, number], Omit<NxdomainRecheck, "entry"> & { entry: string }> =
    db.prepare(
      `SELECT domain, known_name AS knownName, since, due_at AS dueAt, entry FROM nxdomain_rechecks
     WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
    );
  const delivered: Statement<[number, number], { domain: string }> = db.prepare(
    `SELECT r.domain FROM recipients r CROSS JOIN messages m ON m.key = r.message_key AND m.test = 0
     WHERE r.key > (SELECT max(key) FROM recipients) - ? AND r.state = 'delivered' GROUP BY r.domain LIMIT ?`,
  );
  return {
    nxdomainRechecksDue: (arg: { now: number; limit: number }): NxdomainRecheck[] =>
      rechecksDue
        .all(arg.now, arg.limit)
        .map((row) => ({ ...row, entry: JSON.parse(row.entry) as NewSuppression })),
    domainsDelivered: (arg: { limit: number }): string[] =>
      delivered.all(newestRecipients, arg.limit).map(({ domain }) => domain),
  };
}

export const nxdomainRechecks = noun({
  commands(db: Database, { addSuppression }: Writing) {
    const { settleNxdomainRechecks } = createNxdomainRecheckWrites(db, addSuppression);
    return { settleNxdomainRechecks };
  },
  touches: {
    settleNxdomainRechecks(touch, { suppress, at }) {
      for (const { entry } of suppress) touch(entry.accountKey, "suppressions", at);
    },
  },
  lookups: none,
  lists: createRecheckLists,
  calls: ({ write, lists }): NxdomainRecheckStore => ({
    nxdomainRechecksDue: (now, limit) => lists.nxdomainRechecksDue({ now, limit }),
    settleNxdomainRechecks: (rechecks) => write.settleNxdomainRechecks(rechecks),
    domainsDelivered: (limit) => lists.domainsDelivered({ limit }),
  }),
});
