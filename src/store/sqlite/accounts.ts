// Accounts: made, limited, suspended and deleted. Of a deleted one the row stays: what it sent is answered for under its
// key until retention is over, and that key must never be another's. What goes with it and may be much (deliveries,
// suppressions) is dropped in pieces behind it.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, eq, getTableColumns, ne, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { Account, AccountChange } from "../../model/account.ts";
import type { LimitsChange, Rates } from "../../model/limits.ts";
import { everyone, nothing } from "../changes.ts";
import { createdAfter, pageByCreation, type Created } from "../cursor.ts";
import type { AccountStore } from "../interface/accounts.ts";
import { createPoolsAssigned } from "./ip-assignments.ts";
import type { Tally } from "../batch-counters.ts";
import { assigned, cellsOf, recordOf, selected } from "./columns.ts";
import { noun, type Writing } from "./noun.ts";
import { discardPiece, inPieces } from "../pieces.ts";
import { accounts as table } from "./schema/accounts.ts";

/** The rates after a change. */
export const changedRates = (rates: Rates, change: LimitsChange["rates"] = {}): Rates =>
  changed(rates, change);

/** By name; null takes one away. */
function changed<T>(before: Record<string, T>, change: Record<string, T | null>): Record<string, T> {
  const kept = Object.entries(before).filter(([name]) => change[name] === undefined);
  const given = Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
  return Object.fromEntries([...kept, ...given]);
}

const { suppressionsAdded: _added, ...accountColumns } = getTableColumns(table);
const { key: _key, id: _id, name: _name, createdAt: _created, ...changeable } = accountColumns;

export function createAccountWrites(db: Database, tally: Pick<Tally, "accounts">) {
  const assignPools = createPoolsAssigned(db);
  const insert = db.prepare(
    "INSERT INTO accounts (id, name, status, created_at) VALUES (@id, @name, 'active', @createdAt) ON CONFLICT (name) DO NOTHING",
  );
  const find: Statement<[string], Account> = db.prepare(
    `SELECT ${selected(accountColumns)} FROM accounts WHERE id = ? AND status <> 'deleted'`,
  );
  const update = db.prepare(`UPDATE accounts SET ${assigned(changeable)} WHERE key = @key`);
  const bury = db.prepare("UPDATE accounts SET status = 'deleted', name = 'deleted ' || id WHERE key = ?");
  const revoke = ["api_keys", "smtp_credentials"].map((table) =>
    db.prepare(
      `UPDATE ${table} SET status = 'revoked', revoked_at = @at WHERE account_key = @key AND status <> 'revoked'`,
    ),
  );
  const endpointsOf: Statement<[number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE account_key = ?",
  );
  const drop = ["endpoints", "domains", "ip_pools", "ip_assignments"].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE account_key = ?`),
  );
  const someSuppressions = db.prepare(
    `DELETE FROM suppressions WHERE account_key = @accountKey AND canonical IN (
       SELECT canonical FROM suppressions WHERE account_key = @accountKey LIMIT ${discardPiece})`,
  );
  const accountOf = (id: string): Account | null => {
    const row = find.get(id);
    return row ? recordOf(accountColumns, row) : null;
  };

  return {
    createAccount(account: Pick<Account, "id" | "name" | "createdAt">): Account | null {
      if (insert.run(account).changes === 0) return null;
      tally.accounts = null;
      assignPools(account.createdAt);
      return accountOf(account.id);
    },
    changeAccount({ id, change }: { id: string; change: AccountChange }): Account | null {
      const before = accountOf(id);
      if (!before) return null;
      const rates = changedRates(before.rates, change.rates);
      const limits = changed(before.limits, change.limits ?? {});
      const account = { ...before, ...change, rates, limits };
      update.run(cellsOf(accountColumns, account));
      return account;
    },
    /** The keys of its endpoints, whose deliveries are still there; null: there is no such account that is suspended. */
    deleteAccount({ id, at }: { id: string; at: number }): { key: number; endpoints: number[] } | null {
      const account = accountOf(id);
      if (account?.status !== "suspended") return null;
      const { key } = account;
      const endpoints = endpointsOf.all(key).map((endpoint) => endpoint.key);
      bury.run(key);
      tally.accounts = null;
      for (const statement of revoke) statement.run({ key, at });
      for (const statement of drop) statement.run(key);
      return { key, endpoints };
    },
    /** Fewer than a piece: that were the last. */
    dropSuppressions(arg: { accountKey: number }): number {
      return someSuppressions.run(arg).changes;
    },
  };
}

const { placeholder } = sql;

function createAccountLookups(client: Database) {
  const db = drizzle({ client });
  const byAccountName = db
    .select()
    .from(table)
    .where(and(eq(table.name, placeholder("name")), ne(table.status, "deleted")))
    .prepare();
  const byAccountKey = db
    .select()
    .from(table)
    .where(eq(table.key, placeholder("key")))
    .prepare();
  const byAccountId = db
    .select()
    .from(table)
    .where(eq(table.id, placeholder("id")))
    .prepare();
  const isAfter = sql`(${table.createdAt}, ${table.key}) > (${placeholder("createdAt")}, ${placeholder("key")})`;
  const accountsAfter = db
    .select()
    .from(table)
    .where(and(isAfter, ne(table.status, "deleted")))
    .orderBy(asc(table.createdAt), asc(table.key))
    .limit(placeholder("limit"))
    .prepare();
  return {
    accountByName: (name: string) => byAccountName.get({ name }) ?? null,
    accountByKey: (key: number) => byAccountKey.get({ key }) ?? null,
    accountById: (id: string) => byAccountId.get({ id }) ?? null,
    accounts: (after: Created, limit: number) => accountsAfter.all({ ...after, limit }),
  };
}

const messagesAtOnce = 5000;

/** `next`: time and key of the last message looked at; null: there are no older ones. */
export interface UnsentPiece {
  unsent: boolean;
  next: [at: number, key: number] | null;
}

function createAccountLists(db: Database) {
  const ofAccount: Statement<
    [{ accountKey: number; at: number; key: number; limit: number }],
    { key: number; at: number; unsent: number }
  > = db.prepare(
    `SELECT m.key, m.created_at AS at, EXISTS (
       SELECT 1 FROM recipients r WHERE r.message_key = m.key AND (r.due_at IS NOT NULL OR r.lease_owner IS NOT NULL)
     ) AS unsent FROM messages m
     WHERE m.account_key = @accountKey AND (m.created_at, m.key) < (@at, @key)
     ORDER BY m.created_at DESC, m.key DESC LIMIT @limit`,
  );
  return {
    /** Looks at a piece of an account's messages, the newest first. */
    unsentOf({ accountKey, before }: { accountKey: number; before: UnsentPiece["next"] }): UnsentPiece {
      const [at, key] = before ?? [Number.MAX_SAFE_INTEGER, 0];
      const rows = ofAccount.all({ accountKey, at, key, limit: messagesAtOnce });
      const last = rows.length === messagesAtOnce ? rows.at(-1) : undefined;
      return { unsent: rows.some(({ unsent }) => unsent === 1), next: last ? [last.at, last.key] : null };
    },
  };
}

export const accounts = noun({
  commands: (db: Database, { tally }: Writing) => createAccountWrites(db, tally),
  touches: {
    createAccount: (touch) => touch(everyone, "accounts"),
    changeAccount: (touch) => touch(everyone, "accounts"),
    deleteAccount: (touch) => touch(everyone, "accounts"),
    dropSuppressions: nothing, // they went from sight with their account
  },
  lookups: createAccountLookups,
  lists: createAccountLists,
  calls: ({ write, ahead, lookups, lists, rows, after, dropDeliveries }): AccountStore => ({
    accountByName: async (name) => rows.get(`name ${name}`, () => lookups.accountByName(name)),
    accountByKey: async (key) => rows.get(`key ${key}`, () => lookups.accountByKey(key)),
    accountById: async (id) => rows.get(`id ${id}`, () => lookups.accountById(id)),
    createAccount: (account) => write.createAccount(account),
    listAccounts: async (page) =>
      pageByCreation("c", lookups.accounts(createdAfter("c", page), page.limit + 1), page.limit),
    changeAccount: (id, change) => write.changeAccount({ id, change }),
    async hasUnsent(accountKey) {
      for (let before: UnsentPiece["next"] = null; ;) {
        const piece: UnsentPiece = await lists.unsentOf({ accountKey, before });
        if (piece.unsent || piece.next === null) return piece.unsent;
        before = piece.next;
      }
    },
    async deleteAccount(id, at) {
      const deleted = await write.deleteAccount({ id, at });
      if (deleted === null) return false;
      const { key: accountKey, endpoints } = deleted;
      await after(async () => {
        for (const key of endpoints) await dropDeliveries(key);
        await inPieces(() => ahead.dropSuppressions({ accountKey }));
      });
      return true;
    },
  }),
});
