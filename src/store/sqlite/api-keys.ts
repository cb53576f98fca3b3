// Keys, credentials, installation secrets, maintenance and the inbox: what changes rarely. A revocation is final; the
// row as it is then is the answer.
import { randomBytes } from "node:crypto";
import type { Database, Statement } from "better-sqlite3";
import type { ApiKey, ApiKeyChange, KeyStatus } from "../../model/api-key.ts";
import type { MaintenanceWindow } from "../../model/maintenance.ts";
import type { SmtpCredential } from "../../model/smtp-credential.ts";
import { changedRates, type Flat } from "./accounts.ts";

export type NewKeyRow = Omit<ApiKey, "key" | "lastUsedAt" | "revokedAt">;
export type NewCredentialRow = Omit<SmtpCredential, "key" | "lastUsedAt" | "revokedAt">;

export function createAccessWrites(db: Database) {
  const insertKey = db.prepare(
    `INSERT INTO api_keys (id, account_key, name, test, scope, hash, hint, allow_ips, status, created_at, expires_at, rates, daily_quota)
     VALUES (@id, @accountKey, @name, @test, @scope, @hash, @hint, @allowIps, @status, @createdAt, @expiresAt, @rates, @dailyQuota)`,
  );
  const setKeyStatus = db.prepare(
    `UPDATE api_keys SET status = @status, revoked_at = iif(@status = 'revoked', @at, NULL)
     WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
  );
  const findKey: Statement<[string, number], Flat<ApiKey>> = db.prepare(
    `SELECT key, id, account_key AS accountKey, name, test, scope, hint, allow_ips AS allowIps, status, created_at AS createdAt,
       expires_at AS expiresAt, last_used_at AS lastUsedAt, revoked_at AS revokedAt, rates, daily_quota AS dailyQuota
     FROM api_keys WHERE id = ? AND account_key = ?`,
  );
  const changeKey = db.prepare(
    "UPDATE api_keys SET name = @name, allow_ips = @allowIps, rates = @rates, daily_quota = @dailyQuota WHERE key = @key",
  );
  const findCredential: Statement<[string, number], Flat<SmtpCredential>> = db.prepare(
    `SELECT key, id, account_key AS accountKey, name, test, hint, status, created_at AS createdAt,
       last_used_at AS lastUsedAt, revoked_at AS revokedAt
     FROM smtp_credentials WHERE id = ? AND account_key = ?`,
  );
  const insertCredential = db.prepare(
    `INSERT INTO smtp_credentials (id, account_key, name, test, hash, hint, status, created_at)
     VALUES (@id, @accountKey, @name, @test, @hash, @hint, @status, @createdAt)`,
  );
  const revokeCredential = db.prepare(
    `UPDATE smtp_credentials SET status = 'revoked', revoked_at = @at WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
  );
  const keyUsed = db.prepare(
    "UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );
  const credentialUsed = db.prepare(
    "UPDATE smtp_credentials SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE key = ?",
  );
  const clearInbox = db.prepare("DELETE FROM inbox WHERE account_key = ?");
  const insertSecret = db.prepare(
    "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
  );
  const findSecret: Statement<[string], { value: Buffer }> = db.prepare(
    "SELECT value FROM secrets WHERE name = ?",
  );
  const closeDoor = db.prepare(
    "INSERT OR REPLACE INTO maintenance (key, since, until) VALUES (1, @since, @until)",
  );
  const openDoor = db.prepare("DELETE FROM maintenance WHERE key = 1");
  const probe = db.prepare("INSERT OR REPLACE INTO probe (key, bytes) VALUES (1, zeroblob(65536))");

  const keyOf = (accountKey: number, id: string): ApiKey | null => {
    const row = findKey.get(id, accountKey);
    if (!row) return null;
    const { test, allowIps, rates } = row;
    return { ...row, test: test === 1, allowIps: JSON.parse(allowIps), rates: JSON.parse(rates) };
  };
  const credentialOf = (accountKey: number, id: string): SmtpCredential | null => {
    const row = findCredential.get(id, accountKey);
    return row ? { ...row, test: row.test === 1 } : null;
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
    createSmtpCredential(credential: NewCredentialRow, blobs: readonly Buffer[]): number {
      const row = { ...credential, test: credential.test ? 1 : 0, hash: blobs[0] };
      return Number(insertCredential.run(row).lastInsertRowid);
    },
    rotateSmtpCredential(
      arg: { accountKey: number; id: string; fresh: { id: string; hint: string }; at: number },
      blobs: readonly Buffer[],
    ): SmtpCredential | null {
      const { accountKey, id, fresh, at } = arg;
      const old = findCredential.get(id, accountKey);
      if (old?.status === "active") {
        const { name, test } = old;
        insertCredential.run({
          ...fresh,
          accountKey,
          name,
          test,
          hash: blobs[0],
          status: "active",
          createdAt: at,
        });
        revokeCredential.run({ accountKey, id, at });
        return credentialOf(accountKey, fresh.id);
      }
      return credentialOf(accountKey, id);
    },
    revokeSmtpCredential(arg: { accountKey: number; id: string; at: number }): SmtpCredential | null {
      revokeCredential.run(arg);
      return credentialOf(arg.accountKey, arg.id);
    },
    noteUse(use: { apiKeys: number[]; smtpCredentials: number[]; at: number }): void {
      for (const key of use.apiKeys) keyUsed.run(use.at, key);
      for (const key of use.smtpCredentials) credentialUsed.run(use.at, key);
    },
    clearInbox(arg: { accountKey: number }): number {
      return clearInbox.run(arg.accountKey).changes;
    },
    secret(arg: { name: string }): Uint8Array {
      insertSecret.run(arg.name, randomBytes(32));
      const row = findSecret.get(arg.name);
      if (!row) throw new Error("a secret that was just written is not there");
      return new Uint8Array(row.value);
    },
    setMaintenance(window: MaintenanceWindow | null): void {
      if (window === null) openDoor.run();
      else closeDoor.run(window);
    },
    /** Writes a little: the answer to whether writing works again. */
    probe(): void {
      probe.run();
    },
  };
}
