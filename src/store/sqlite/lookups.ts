// Reads by key on the loop's own read-only connection: a few microseconds each, where a hop to a thread costs ninety.
// Every statement is prepared once and served by an index. The rows of rarely changed things are read through the
// table types (schema.ts), those of the hot path by hand.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, count, eq, getTableColumns, gt, isNull, lt, lte, ne, or, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { Resource } from "../../model/last-change.ts";
import type { Quota } from "../../model/limits.ts";
import type { Suppression } from "../../model/suppression.ts";
import { createHoldViews } from "./held-mail.ts";
import { createAssignmentRows } from "./ip-assignments.ts";
import { createMessageRows } from "./message-rows.ts";
import { createPoolRows } from "./ip-pool-rows.ts";
import { createSentRows } from "./sent-messages.ts";
import { accounts, apiKeys, domains, endpoints, maintenance, secrets, smtpCredentials } from "./schema.ts";
import { createQuotaView } from "./quotas.ts";
import { suppressionColumns } from "./suppressions.ts";

const { placeholder } = sql;

/** Domains that are read at once, of all accounts. */
const mostToCheck = 2000;

/** A domain or one of its keys is not yet seen in the DNS. */
const waitsForDns = or(
  eq(domains.status, "pending"),
  sql`EXISTS (SELECT 1 FROM json_each(${domains.dkimKeys}) WHERE value ->> 'status' = 'pending')`,
);

export function createLookups(client: Database) {
  const db = drizzle({ client });
  const byAccountName = db
    .select()
    .from(accounts)
    .where(and(eq(accounts.name, placeholder("name")), ne(accounts.status, "deleted")))
    .prepare();
  const byAccountKey = db
    .select()
    .from(accounts)
    .where(eq(accounts.key, placeholder("key")))
    .prepare();
  const byAccountId = db
    .select()
    .from(accounts)
    .where(eq(accounts.id, placeholder("id")))
    .prepare();
  const pausedAccounts = db.select().from(accounts).where(gt(accounts.pausedAt, 0)).prepare();
  const accountsAfter = db
    .select()
    .from(accounts)
    .where(and(gt(accounts.key, placeholder("after")), ne(accounts.status, "deleted")))
    .orderBy(asc(accounts.key))
    .limit(placeholder("limit"))
    .prepare();
  const keyByHash = db
    .select(withoutHash(apiKeys))
    .from(apiKeys)
    .where(eq(apiKeys.hash, placeholder("hash")))
    .prepare();
  const keyById = db
    .select(withoutHash(apiKeys))
    .from(apiKeys)
    .where(and(eq(apiKeys.id, placeholder("id")), eq(apiKeys.accountKey, placeholder("accountKey"))))
    .prepare();
  const keysOf = db
    .select(withoutHash(apiKeys))
    .from(apiKeys)
    .where(and(eq(apiKeys.accountKey, placeholder("accountKey")), gt(apiKeys.key, placeholder("after"))))
    .orderBy(asc(apiKeys.key))
    .limit(placeholder("limit"))
    .prepare();
  const credentialByHash = db
    .select(withoutHash(smtpCredentials))
    .from(smtpCredentials)
    .where(
      and(
        eq(smtpCredentials.accountKey, placeholder("accountKey")),
        eq(smtpCredentials.test, placeholder("test")),
        eq(smtpCredentials.hash, placeholder("hash")),
      ),
    )
    .prepare();
  const credentialsOf = db
    .select(withoutHash(smtpCredentials))
    .from(smtpCredentials)
    .where(eq(smtpCredentials.accountKey, placeholder("accountKey")))
    .orderBy(asc(smtpCredentials.key))
    .prepare();
  const domainByName = db
    .select()
    .from(domains)
    .where(and(eq(domains.accountKey, placeholder("accountKey")), eq(domains.name, placeholder("name"))))
    .prepare();
  const domainCount = db
    .select({ n: count() })
    .from(domains)
    .where(eq(domains.accountKey, placeholder("accountKey")))
    .prepare();
  const domainsOf = db
    .select()
    .from(domains)
    .where(eq(domains.accountKey, placeholder("accountKey")))
    .orderBy(asc(domains.name))
    .prepare();
  // Of each account its first ones before anybody's second: no account's many are in the way of others' few.
  const ranked = db
    .select({
      key: domains.key,
      place:
        sql<number>`row_number() OVER (PARTITION BY ${domains.accountKey} ORDER BY ${domains.checkedAt})`.as(
          "place",
        ),
    })
    .from(domains)
    .where(
      and(
        ne(domains.status, "suspended"),
        or(
          isNull(domains.checkedAt),
          and(waitsForDns, lt(domains.checkedAt, placeholder("pendingBefore"))),
          lt(domains.checkedAt, placeholder("othersBefore")),
        ),
      ),
    )
    .as("ranked");
  const domainsToCheck = db
    .select(getTableColumns(domains))
    .from(ranked)
    .innerJoin(domains, eq(domains.key, ranked.key))
    .where(lte(ranked.place, placeholder("limit")))
    .orderBy(asc(ranked.place), asc(domains.checkedAt))
    .limit(mostToCheck)
    .prepare();
  const endpointByKey = db
    .select()
    .from(endpoints)
    .where(eq(endpoints.key, placeholder("key")))
    .prepare();
  const endpointById = db
    .select()
    .from(endpoints)
    .where(and(eq(endpoints.id, placeholder("id")), eq(endpoints.accountKey, placeholder("accountKey"))))
    .prepare();
  const endpointsOf = db
    .select()
    .from(endpoints)
    .where(eq(endpoints.accountKey, placeholder("accountKey")))
    .orderBy(asc(endpoints.key))
    .prepare();
  const secretByName = db
    .select()
    .from(secrets)
    .where(eq(secrets.name, placeholder("name")))
    .prepare();
  const maintenanceWindow = db
    .select({ since: maintenance.since, until: maintenance.until })
    .from(maintenance)
    .where(eq(maintenance.key, 1))
    .prepare();

  const suppression: Statement<[number, string, number], Suppression> = client.prepare(
    `SELECT ${suppressionColumns} FROM suppressions WHERE account_key = ? AND canonical = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const answer: Statement<
    [number, number, string, number],
    { fingerprint: Uint8Array; status: number; body: string }
  > = client.prepare(
    `SELECT fingerprint, status, body FROM idempotency WHERE account_key = ? AND test = ? AND request_key = ? AND created_at >= ?`,
  );
  const content: Statement<[number], { bytes: Buffer }> = client.prepare(
    "SELECT bytes FROM content WHERE message_key = ?",
  );
  const counted: Statement<[], { seq: number }> = client.prepare(
    "SELECT seq FROM stats_waiting UNION ALL SELECT seq FROM stats_sorted LIMIT 1",
  );
  // They are numbered without a gap: a fold takes the oldest.
  const waitingCounts: Statement<[], { n: number | null }> = client.prepare(
    "SELECT (SELECT max(seq) FROM stats_waiting) - (SELECT min(seq) FROM stats_waiting) + 1 AS n",
  );
  // One seek an endpoint that has something pending.
  const nextEndpoint: Statement<[number], { endpointKey: number; dueAt: number }> = client.prepare(
    `SELECT endpoint_key AS endpointKey, due_at AS dueAt FROM deliveries INDEXED BY deliveries_due
     WHERE due_at IS NOT NULL AND endpoint_key > ? ORDER BY endpoint_key, due_at LIMIT 1`,
  );
  const activeOf: Statement<[number], { accountKey: number }> = client.prepare(
    "SELECT account_key AS accountKey FROM endpoints WHERE key = ? AND active = 1",
  );

  const expired: Statement<[number, number], { at: number | null }> = client.prepare(
    "SELECT max(expires_at) AS at FROM suppressions WHERE account_key = ? AND expires_at <= ?",
  );
  const becameDue: Statement<[number, number], { at: number | null }> = client.prepare(
    "SELECT max(due_at) AS at FROM recipients WHERE account_key = ? AND due_at <= ? AND state = 'scheduled'",
  );

  const passed = createQuotaView(client);
  return {
    messages: createMessageRows(client),
    sent: createSentRows(client),
    pools: createPoolRows(client),
    assignments: createAssignmentRows(client),
    accountByName: (name: string) => byAccountName.get({ name }) ?? null,
    accountByKey: (key: number) => byAccountKey.get({ key }) ?? null,
    accountById: (id: string) => byAccountId.get({ id }) ?? null,
    pausedAccounts: () => pausedAccounts.all(),
    ...createHoldViews(client),
    spentQuota: (quotas: Quota[], at: number) => passed(quotas, at, 1),
    maintenance: () => maintenanceWindow.get() ?? null,
    accounts: (after: number, limit: number) => accountsAfter.all({ after, limit }),
    apiKeyByHash: (hash: Uint8Array) => keyByHash.get({ hash: Buffer.from(hash) }) ?? null,
    apiKey: (accountKey: number, id: string) => keyById.get({ accountKey, id }) ?? null,
    apiKeys: (accountKey: number, after: number, limit: number) => keysOf.all({ accountKey, after, limit }),
    credentialByHash: (accountKey: number, test: boolean, hash: Uint8Array) =>
      credentialByHash.get({ accountKey, test: Number(test), hash: Buffer.from(hash) }) ?? null,
    credentials: (accountKey: number) => credentialsOf.all({ accountKey }),
    domainByName: (accountKey: number, name: string) => domainByName.get({ accountKey, name }) ?? null,
    countDomains: (accountKey: number) => domainCount.get({ accountKey })?.n ?? 0,
    domains: (accountKey: number) => domainsOf.all({ accountKey }),
    domainsToCheck: (pendingBefore: number, othersBefore: number, limit: number) =>
      domainsToCheck.all({ pendingBefore, othersBefore, limit }),
    endpointByKey: (key: number) => endpointByKey.get({ key }) ?? null,
    endpoint: (accountKey: number, id: string) => endpointById.get({ accountKey, id }) ?? null,
    endpoints: (accountKey: number) => endpointsOf.all({ accountKey }),
    secret: (name: string) => secretByName.get({ name })?.value ?? null,
    suppression: (accountKey: number, canonical: string, now: number) =>
      suppression.get(accountKey, canonical, now) ?? null,
    answer: (accountKey: number, test: boolean, key: string, notBefore: number) =>
      answer.get(accountKey, test ? 1 : 0, key, notBefore) ?? null,
    content: (messageKey: number) => content.get(messageKey)?.bytes ?? null,
    /** When an entry of the list last ended, or the time of mail came, with no row written for it. */
    lastPassed(accountKey: number, of: readonly Resource[], now: number): number | null {
      const passed = [
        of.includes("suppressions") ? expired.get(accountKey, now)?.at : null,
        of.includes("messages") ? becameDue.get(accountKey, now)?.at : null,
      ].filter((at) => at !== null && at !== undefined);
      return passed.length === 0 ? null : Math.max(...passed);
    },
    /** Something was counted that is not folded yet. */
    countsWait: () => counted.get() !== undefined,
    /** How many rows of it wait to be sorted. */
    countsWaiting: () => waitingCounts.get()?.n ?? 0,
    endpointsDue(): { endpointKey: number; accountKey: number; dueAt: number }[] {
      const due: { endpointKey: number; accountKey: number; dueAt: number }[] = [];
      for (let next = nextEndpoint.get(0); next; next = nextEndpoint.get(next.endpointKey)) {
        const active = activeOf.get(next.endpointKey);
        if (active) due.push({ ...next, ...active });
      }
      return due;
    },
  };
}

/** The columns of a table without the hash that its rows are found by. */
function withoutHash<T extends typeof apiKeys | typeof smtpCredentials>(table: T) {
  const { hash: _hash, ...columns } = getTableColumns(table);
  return columns;
}

export type Lookups = ReturnType<typeof createLookups>;
