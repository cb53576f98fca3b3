// SMTP credentials. A revocation is final; the row as it is then is the answer.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { SmtpCredential } from "../../model/smtp-credential.ts";
import type { SmtpCredentialStore } from "../interface/smtp-credentials.ts";
import { cellsOf, inserted, recordOf, selected } from "./columns.ts";
import { none, noun } from "./noun.ts";
import { smtpCredentials as table } from "./schema/accounts.ts";
import { withoutHash } from "./without-hash.ts";

const { placeholder } = sql;

type NewCredentialRow = Omit<SmtpCredential, "key" | "lastUsedAt" | "revokedAt">;

const columns = withoutHash(table);
const { key: _key, lastUsedAt: _used, revokedAt: _revoked, ...written } = getTableColumns(table);

function createCredentialWrites(db: Database) {
  const findCredential: Statement<[string, number], SmtpCredential> = db.prepare(
    `SELECT ${selected(columns)} FROM smtp_credentials WHERE id = ? AND account_key = ?`,
  );
  const insertCredential = db.prepare(`INSERT INTO smtp_credentials ${inserted(written)}`);
  const revokeCredential = db.prepare(
    `UPDATE smtp_credentials SET status = 'revoked', revoked_at = @at WHERE id = @id AND account_key = @accountKey AND status <> 'revoked'`,
  );

  const credentialOf = (accountKey: number, id: string): SmtpCredential | null => {
    const row = findCredential.get(id, accountKey);
    return row ? recordOf(columns, row) : null;
  };

  return {
    createSmtpCredential(credential: NewCredentialRow, blobs: readonly Buffer[]): number {
      const row = { ...cellsOf(columns, credential), hash: blobs[0] };
      return Number(insertCredential.run(row).lastInsertRowid);
    },
    rotateSmtpCredential(
      arg: { accountKey: number; id: string; fresh: { id: string; hint: string }; at: number },
      blobs: readonly Buffer[],
    ): SmtpCredential | null {
      const { accountKey, id, fresh, at } = arg;
      const old = credentialOf(accountKey, id);
      if (old?.status === "active") {
        const { name, test } = old;
        const row = { ...fresh, accountKey, name, test, status: "active", createdAt: at };
        insertCredential.run({ ...cellsOf(columns, row), hash: blobs[0] });
        revokeCredential.run({ accountKey, id, at });
        return credentialOf(accountKey, fresh.id);
      }
      return credentialOf(accountKey, id);
    },
    revokeSmtpCredential(arg: { accountKey: number; id: string; at: number }): SmtpCredential | null {
      revokeCredential.run(arg);
      return credentialOf(arg.accountKey, arg.id);
    },
  };
}

function createCredentialLookups(client: Database) {
  const db = drizzle({ client });
  const credentialByHash = db
    .select(columns)
    .from(table)
    .where(
      and(
        eq(table.accountKey, placeholder("accountKey")),
        eq(table.test, placeholder("test")),
        eq(table.hash, placeholder("hash")),
      ),
    )
    .prepare();
  const credentialsOf = db
    .select(columns)
    .from(table)
    .where(eq(table.accountKey, placeholder("accountKey")))
    .orderBy(asc(table.createdAt), asc(table.key))
    .prepare();
  return {
    credentialByHash: (accountKey: number, test: boolean, hash: Uint8Array) =>
      credentialByHash.get({ accountKey, test: Number(test), hash: Buffer.from(hash) }) ?? null,
    credentials: (accountKey: number) => credentialsOf.all({ accountKey }),
  };
}

export const smtpCredentials = noun({
  commands: createCredentialWrites,
  touches: {
    createSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
    rotateSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
    revokeSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
  },
  lookups: createCredentialLookups,
  lists: none,
  calls: ({ write, lookups, rows }): SmtpCredentialStore => ({
    async createSmtpCredential({ hash, ...credential }) {
      const key = await write.createSmtpCredential(credential, [hash]);
      return { ...credential, key, lastUsedAt: null, revokedAt: null };
    },
    smtpCredentialByHash: async (accountKey, test, hash) =>
      rows.get(`credential ${accountKey} ${test} ${Buffer.from(hash).toString("latin1")}`, () =>
        lookups.credentialByHash(accountKey, test, hash),
      ),
    listSmtpCredentials: async (accountKey) => lookups.credentials(accountKey),
    rotateSmtpCredential: (accountKey, id, { hash, ...fresh }, at) =>
      write.rotateSmtpCredential({ accountKey, id, fresh, at }, [hash]),
    revokeSmtpCredential: (accountKey, id, at) => write.revokeSmtpCredential({ accountKey, id, at }),
  }),
});
