// API keys. A revocation is final; the row as it is then is the answer.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { ApiKey, ApiKeyChange, KeyStatus } from "../../model/api-key.ts";
import { everyone } from "../changes.ts";
import { createdAfter, pageByCreation, type Created } from "../cursor.ts";
import type { ApiKeyStore } from "../interface/api-keys.ts";
import { changedRates } from "./accounts.ts";
import { assigned, cellsOf, inserted, recordOf, selected } from "./columns.ts";
import { none, noun } from "./noun.ts";
import { apiKeys as table } from "./schema/accounts.ts";
import { withoutHash } from "./without-hash.ts";

const { placeholder } = sql;

type NewKeyRow = Omit<ApiKey, "key" | "lastUsedAt" | "revokedAt">;

const columns = withoutHash(table);
const { key: _key, lastUsedAt: _used, revokedAt: _revoked, ...written } = getTableColumns(table);
const { id: _id, accountKey: _account, hash: _hash, ...changeable } = written;

function createKeyWrites(db: Database) {
  const insertKey = db.prepare(`INSERT INTO api_keys ${inserted(written)}`);
  const setKeyStatus = db.prepare(
    `UPDATE api_keys SET status = @status, revoked_at = iif(@status = 'revoked', @at, NULL)
     WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
  );
  const findKey: Statement<[string, number], ApiKey> = db.prepare(
    `SELECT ${selected(columns)} FROM api_keys WHERE id = ? AND account_key = ?`,
  );
  const changeKey = db.prepare(`UPDATE api_keys SET ${assigned(changeable)} WHERE key = @key`);
  const keyUsed = db.prepare(
    "UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );
  const credentialUsed = db.prepare(
    "UPDATE smtp_credentials SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );

  const keyOf = (accountKey: number, id: string): ApiKey | null => {
    const row = findKey.get(id, accountKey);
    return row ? recordOf(columns, row) : null;
  };

  return {
    createApiKey(key: NewKeyRow, blobs: readonly Buffer[]): number {
      return Number(insertKey.run({ ...cellsOf(columns, key), hash: blobs[0] }).lastInsertRowid);
    },
    /** The key as it is then: one that is revoked stays so. */
    setApiKeyStatus(arg: { accountKey: number; id: string; status: KeyStatus; at: number }): ApiKey | null {
      setKeyStatus.run(arg);
      return keyOf(arg.accountKey, arg.id);
    },
    changeApiKey(arg: { accountKey: number; id: string; change: ApiKeyChange }): ApiKey | null {
      const { accountKey, id, change } = arg;
      const before = keyOf(accountKey, id);
      if (!before) return null;
      const key = { ...before, ...change, rates: changedRates(before.rates, change.rates) };
      changeKey.run(cellsOf(columns, key));
      return key;
    },
    noteUse(use: { apiKeys: number[]; smtpCredentials: number[]; at: number }): void {
      for (const key of use.apiKeys) keyUsed.run(use.at, key);
      for (const key of use.smtpCredentials) credentialUsed.run(use.at, key);
    },
  };
}

function createKeyLookups(client: Database) {
  const db = drizzle({ client });
  const keyByHash = db
    .select(columns)
    .from(table)
    .where(eq(table.hash, placeholder("hash")))
    .prepare();
  const keyById = db
    .select(columns)
    .from(table)
    .where(and(eq(table.id, placeholder("id")), eq(table.accountKey, placeholder("accountKey"))))
    .prepare();
  const isAfter = sql`(${table.createdAt}, ${table.key}) > (${placeholder("createdAt")}, ${placeholder("key")})`;
  const keysOf = db
    .select(columns)
    .from(table)
    .where(and(eq(table.accountKey, placeholder("accountKey")), isAfter))
    .orderBy(asc(table.createdAt), asc(table.key))
    .limit(placeholder("limit"))
    .prepare();
  return {
    apiKeyByHash: (hash: Uint8Array) => keyByHash.get({ hash: Buffer.from(hash) }) ?? null,
    apiKey: (accountKey: number, id: string) => keyById.get({ accountKey, id }) ?? null,
    apiKeys: (accountKey: number, after: Created, limit: number) =>
      keysOf.all({ accountKey, ...after, limit }),
  };
}

export const apiKeys = noun({
  commands: createKeyWrites,
  touches: {
    createApiKey: (touch, { accountKey }) => touch(accountKey, "keys"),
    setApiKeyStatus: (touch, { accountKey }) => touch(accountKey, "keys"),
    changeApiKey: (touch, { accountKey }) => touch(accountKey, "keys"),
    noteUse(touch, { apiKeys: keys, smtpCredentials }) {
      if (keys.length > 0) touch(everyone, "keys");
      if (smtpCredentials.length > 0) touch(everyone, "smtp_credentials");
    },
  },
  lookups: createKeyLookups,
  lists: none,
  calls: ({ write, lookups, rows }): ApiKeyStore => ({
    async createApiKey({ hash, ...key }) {
      return { ...key, key: await write.createApiKey(key, [hash]), lastUsedAt: null, revokedAt: null };
    },
    apiKeyByHash: async (hash) =>
      rows.get(`api key ${Buffer.from(hash).toString("latin1")}`, () => lookups.apiKeyByHash(hash)),
    apiKey: async (accountKey, id) => lookups.apiKey(accountKey, id),
    listApiKeys: async (accountKey, page) =>
      pageByCreation("k", lookups.apiKeys(accountKey, createdAfter("k", page), page.limit + 1), page.limit),
    changeApiKey: (accountKey, id, change) => write.changeApiKey({ accountKey, id, change }),
    setApiKeyStatus: (accountKey, id, status, at) => write.setApiKeyStatus({ accountKey, id, status, at }),
    noteUse: (use) => write.noteUse(use),
  }),
});
