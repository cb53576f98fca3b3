// Keys, credentials, installation secrets, maintenance and the inbox: what changes rarely. A revocation is final; the
// look-ups read the row back after the commit.
import { randomBytes } from "node:crypto";
import type { Database, Statement } from "better-sqlite3";
import type { ApiKey, KeyStatus, MaintenanceWindow, SmtpCredential } from "./store.ts";

export type NewApiKey = Omit<ApiKey, "key" | "hash" | "lastUsedAt" | "revokedAt">;
export type NewCredential = Omit<SmtpCredential, "key" | "hash" | "lastUsedAt" | "revokedAt">;

export function createAccessWrites(db: Database) {
  const insertKey = db.prepare(
    `INSERT INTO api_keys (id, account_key, name, test, scope, hash, hint, allow_ips, status, created_at, expires_at)
     VALUES (@id, @accountKey, @name, @test, @scope, @hash, @hint, @allowIps, @status, @createdAt, @expiresAt)`,
  );
  const setKeyStatus = db.prepare(
    `UPDATE api_keys SET status = @status, revoked_at = iif(@status = 'revoked', @at, NULL)
     WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
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

  return {
    createApiKey(key: NewApiKey, blobs: readonly Buffer[]): number {
      const row = { ...key, test: key.test ? 1 : 0, allowIps: JSON.stringify(key.allowIps), hash: blobs[0] };
      return Number(insertKey.run(row).lastInsertRowid);
    },
    setApiKeyStatus(arg: { accountKey: number; id: string; status: KeyStatus; at: number }): void {
      setKeyStatus.run(arg);
    },
    createSmtpCredential(credential: NewCredential, blobs: readonly Buffer[]): number {
      const row = { ...credential, test: credential.test ? 1 : 0, hash: blobs[0] };
      return Number(insertCredential.run(row).lastInsertRowid);
    },
    revokeSmtpCredential(arg: { accountKey: number; id: string; at: number }): void {
      revokeCredential.run(arg);
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
