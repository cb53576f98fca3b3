// API keys. A revocation is final; the row as it is then is the answer.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { ApiKey, ApiKeyChange, KeyStatus } from "../../model/api-key.ts";
import { everyone } from "../changes.ts";
import { createdAfter, pageByCreation, type Created } from "../cursor.ts";
import type { ApiKeyStore } from "../interface/api-keys.ts";
import { changedRates, type Flat } from "./accounts.ts";
import { inserted, selected } from "./columns.ts";
import { none, noun } from "./noun.ts";
import { apiKeys as table } from "./schema/accounts.ts";
import { withoutHash } from "./without-hash.ts";

const { placeholder } = sql;

type NewKeyRow = Omit<ApiKey, "key" | "lastUsedAt" | "revokedAt">;

const { key: _key, lastUsedAt: _used, revokedAt: _revoked, ...written } = getTableColumns(table);

function createKeyWrites(db: Database) {
  const insertKey = db.prepare(`INSERT INTO api_keys ${inserted(written)}`);
  const setKeyStatus = db.prepare(
    `UPDATE api_keys SET status = @status, revoked_at = iif(@status = 'revoked', @at, NULL)
     WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
  );
  const findKey: Statement<[string, number], Flat<ApiKey>> = db.prepare(
    `SELECT ${selected(withoutHash(table))} FROM api_keys WHERE id = ? AND account_key = ?`,
  );
  const changeKey = db.prepare(
    "UPDATE api_keys SET name = @name, allow_ips = @allowIps, rates = @rates, daily_quota = @dailyQuota WHERE key = @key",
  );
  const keyUsed = db.prepare(
    "UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );
  const credentialUsed = db.prepare(
    "UPDATE smtp_credentials SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );

  const keyOf = (accountKey: number, id: string): ApiKey | null => {
    const row = findKey.get(id, accountKey);
    if (!row) return null;
    const { test, allowIps, rates } = row;
    return { ...row, test: test === 1, allowIps: JSON.parse(allowIps), rates: JSON.parse(rates) };
  };

  return {
    createApiKey(key: NewKeyRow, blobs: readonly Buffer[]): number {
      const test = key.test ? 1 : 0;
      const texts = { allowIps: JSON.stringify(key.allowIps), rates: JSON.stringify(key.rates) };
      return Number(insertKey.run({ ...key, ...texts, test, hash: blobs[0] }).lastInsertRowid);
    },
    /** The key as it is then: one that is revoked stays so. */
    setApiKeyStatus(arg: { accountKey: number; id: string; status: KeyStatus; at: number }): ApiKey | null {
      setKeyStatus.run(arg);
      return keyOf(arg.accountKey, arg.id);
    },
    changeApiKey(arg: { accountKey: number; id: string; change: ApiKeyChange }): ApiKey | null {
      const { accountKey, id, change } = arg;
      const key = keyOf(accountKey, id);
      if (!key) return null;
      const { name, allowIps, dailyQuota } = { ...key, ...change };
      const rates = changedRates(key.rates, change.rates);
      changeKey.run({
        key: key.key,
        name,
        dailyQuota,
        allowIps: JSON.stringify(allowIps),
        rates: JSON.stringify(rates),
      });
      return { ...key, name, allowIps, rates, dailyQuota };
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
    .select(withoutHash(table))
    .from(table)
    .where(eq(table.hash, placeholder("hash")))
    .prepare();
  const keyById = db
    .select(withoutHash(table))
    .from(table)
    .where(and(eq(table.id, placeholder("id")), eq(table.accountKey, placeholder("accountKey"))))
    .prepare();
  const isAfter = sql`(${table.createdAt}, ${table.key}) > (${placeholder("createdAt")}, ${placeholder("key")})`;
  const keysOf = db
    .select(withoutHash(table))
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
