// What changes the suppression list. A stronger reason replaces a weaker one, the first spelling stays, as does a
// description that no other replaces, and a suppression never ends earlier because another one came. How many of an
// account's were added by hand is kept beside its row, since a long list is not to be counted for each that is added.
import type { Database, Statement } from "better-sqlite3";
import { reasonStrength, type NewSuppression, type Suppression } from "../../model/suppression.ts";
import { removed, type Touch } from "../changes.ts";
import { kindOf, pageAt, pageOf } from "../cursor.ts";
import type { SuppressionsAdded, SuppressionStore } from "../interface/suppressions.ts";
import { mostOf, within, type LimitExceeded } from "../limit.ts";
import { noun } from "./noun.ts";
import { suppressionColumns } from "./suppression-columns.ts";
import { createSuppressionLists } from "./suppression-lists.ts";

/** Not what the system found out itself, or the recipient asked for. */
const byHand: ReadonlySet<Suppression["source"]> = new Set(["api", "cli", "import"]);

export interface SuppressionChange {
  change: "added" | "updated" | "unchanged";
  row: Suppression;
}

interface Added {
  entries: NewSuppression[];
  at: number;
  most?: number;
}

export function createSuppressionWrites(db: Database) {
  const find: Statement<[number, string], Suppression> = db.prepare(
    `SELECT ${suppressionColumns} FROM suppressions WHERE account_key = ? AND canonical = ?`,
  );
  const put = db.prepare(
    `INSERT OR REPLACE INTO suppressions (account_key, canonical, email, reason, source, description, message_id, event_id,
       smtp_code, smtp_status, expires_at, created_at, updated_at)
     VALUES (@accountKey, @canonical, @email, @reason, @source, @description, @messageId, @eventId,
       @smtpCode, @smtpStatus, @expiresAt, @createdAt, @updatedAt)`,
  );
  const remove: Statement<[number, string], Pick<Suppression, "source">> = db.prepare(
    "DELETE FROM suppressions WHERE account_key = ? AND canonical = ? RETURNING source",
  );
  const addedOf: Statement<[number], { n: number }> = db.prepare(
    "SELECT suppressions_added AS n FROM accounts WHERE key = ?",
  );
  const raise = db.prepare("UPDATE accounts SET suppressions_added = suppressions_added + ? WHERE key = ?");

  const look = (entry: NewSuppression, at: number): MergedEntry => {
    const old = find.get(entry.accountKey, entry.canonical);
    return { ...merge(old, entry, at), wasByHand: old !== undefined && byHand.has(old.source) };
  };
  /** How many more were added by hand than before. */
  const moreOf = ({ change, row, wasByHand }: MergedEntry): number =>
    change === "unchanged" ? 0 : Number(byHand.has(row.source)) - Number(wasByHand);
  const write = ({ wasByHand: _was, ...next }: MergedEntry): SuppressionChange => {
    if (next.change !== "unchanged") put.run(next.row);
    return next;
  };

  /** Of one account. Never refused: what the system finds out, and recipients ask for, has no limit. */
  const add = (entries: readonly NewSuppression[], at: number): SuppressionChange[] => {
    let more = 0;
    const changes = entries.map((entry) => {
      const looked = look(entry, at);
      more += moreOf(looked);
      return write(looked);
    });
    if (more !== 0) raise.run(more, entries[0]?.accountKey);
    return changes;
  };

  /** All of them, or none where the account would have more than `most`. */
  const addSuppressions = ({ entries, at, most = Infinity }: Added): SuppressionChange[] | LimitExceeded => {
    const [first] = entries;
    if (first && most !== Infinity) {
      const more = entries.reduce((sum, entry) => sum + moreOf(look(entry, at)), 0);
      const has = addedOf.get(first.accountKey)?.n ?? 0;
      if (more > 0 && has + more > most) return { over: has };
    }
    return add(entries, at);
  };

  return {
    addSuppression(entry: NewSuppression, at: number): SuppressionChange {
      const [change] = add([entry], at);
      if (!change) throw new Error("an entry is a change");
      return change;
    },
    addSuppressions,
    /** The rows stay in the writer's thread: a million of them, each written twice (idempotent-write.ts), is what an import would pass about. */
    importSuppressions(arg: Added): SuppressionsAdded | LimitExceeded {
      const changes = addSuppressions(arg);
      return "over" in changes ? changes : countsOf(changes);
    },
    removeSuppression(arg: { accountKey: number; canonical: string }): boolean {
      const removed = remove.get(arg.accountKey, arg.canonical);
      if (removed && byHand.has(removed.source)) raise.run(-1, arg.accountKey);
      return removed !== undefined;
    },
  };
}

function countsOf(changes: readonly SuppressionChange[]): SuppressionsAdded {
  const counts = { added: 0, updated: 0, unchanged: 0 };
  for (const { change } of changes) counts[change] += 1;
  return counts;
}

interface MergedEntry extends SuppressionChange {
  wasByHand: boolean;
}

/** What becomes of an entry when another one arrives; one that has expired counts as none. */
function merge(old: Suppression | undefined, entry: NewSuppression, at: number): SuppressionChange {
  if (!old || (old.expiresAt !== null && old.expiresAt <= at)) {
    return { change: "added", row: { ...entry, createdAt: at, updatedAt: at } };
  }
  const expiresAt =
    old.expiresAt === null || entry.expiresAt === null ? null : Math.max(old.expiresAt, entry.expiresAt);
  const description = entry.description ?? old.description;
  if (reasonStrength[entry.reason] > reasonStrength[old.reason]) {
    return {
      change: "updated",
      row: { ...entry, email: old.email, description, expiresAt, createdAt: old.createdAt, updatedAt: at },
    };
  }
  if (expiresAt !== old.expiresAt) return { change: "updated", row: { ...old, expiresAt, updatedAt: at } };
  return { change: "unchanged", row: old };
}

function createSuppressionLookups(db: Database) {
  const suppression: Statement<[number, string, number], Suppression> = db.prepare(
    `SELECT ${suppressionColumns} FROM suppressions WHERE account_key = ? AND canonical = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  return {
    suppression: (accountKey: number, canonical: string, now: number) =>
      suppression.get(accountKey, canonical, now) ?? null,
  };
}

/** All are of one account. */
function touchAdded(touch: Touch, { entries: [first], at }: Added): void {
  if (first) touch(first.accountKey, "suppressions", at);
}

export const suppressions = noun({
  commands(db: Database) {
    const { addSuppressions, importSuppressions, removeSuppression } = createSuppressionWrites(db);
    return { addSuppressions, importSuppressions, removeSuppression };
  },
  touches: {
    addSuppressions: touchAdded,
    importSuppressions: touchAdded,
    removeSuppression: (touch, { accountKey }) => touch(accountKey, "suppressions", removed),
  },
  lookups: createSuppressionLookups,
  lists: createSuppressionLists,
  calls: ({ write, lookups, lists, clock }): SuppressionStore => ({
    suppression: async (accountKey, canonical, now) => lookups.suppression(accountKey, canonical, now),
    async suppressed(accountKey, canonicals, now) {
      const entries = canonicals.map((canonical) => lookups.suppression(accountKey, canonical, now));
      return entries.filter((entry) => entry !== null);
    },
    async listSuppressions(accountKey, filter, page) {
      const kind = kindOf("s", filter);
      const at = pageAt(kind, page, ["string"]);
      return pageOf(kind, await lists.listSuppressions({ accountKey, filter, page: at, now: clock.now() }));
    },
    countSuppressions: (accountKey, filter, after) =>
      lists.countSuppressions({ accountKey, filter, after, now: clock.now() }),
    async addSuppressions(entries, at, most) {
      const changes = within(await write.addSuppressions({ entries, at, ...mostOf(most) }));
      return { ...countsOf(changes), rows: changes.map(({ row }) => row) };
    },
    importSuppressions: async (entries, at, most) =>
      within(await write.importSuppressions({ entries, at, ...mostOf(most) })),
    removeSuppression: (accountKey, canonical) => write.removeSuppression({ accountKey, canonical }),
  }),
});
