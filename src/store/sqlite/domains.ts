// Sender domains: what changes them. A row is written whole from what a caller read of it, so each change raises its
// revision, and one that was made of an older state (a check of the DNS takes seconds) writes nothing. The row is found by its
// public id: the engine may give the key of a deleted domain to another.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, count, eq, getTableColumns, isNull, lt, lte, ne, or, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { SenderDomain } from "../../model/domain.ts";
import type { DomainStore } from "../interface/domains.ts";
import { assigned, cellsOf, inserted } from "./columns.ts";
import { mostOf, within, type LimitExceeded } from "../limit.ts";
import { noun } from "./noun.ts";
import { domains as table } from "./schema/accounts.ts";
import {
  createTrackingNameList,
  createTrackingNameLookup,
  createTrackingNameWrite,
} from "./tracking-names.ts";

const { key: _key, ...written } = getTableColumns(table);
const {
  id: _id,
  accountKey: _account,
  name: _name,
  createdAt: _created,
  revision: _revision,
  ...changeable
} = written;

export function createDomainWrites(db: Database) {
  const insert = db.prepare(
    `INSERT INTO domains ${inserted(written)} ON CONFLICT (account_key, name) DO NOTHING`,
  );
  const countOf: Statement<[number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM domains WHERE account_key = ?",
  );
  const find = db.prepare("SELECT 1 FROM domains WHERE account_key = ? AND name = ?");
  const save = db.prepare(
    `UPDATE domains SET ${assigned(changeable)}, revision = revision + 1 WHERE id = @id AND revision = @revision`,
  );
  const noteTrackingName = createTrackingNameWrite(db);
  const remove = db.prepare("DELETE FROM domains WHERE account_key = ? AND name = ?");

  return {
    /** The key; null where the account has the domain already. */
    createDomain({
      most = Infinity,
      ...domain
    }: Omit<SenderDomain, "key"> & { most?: number }): number | null | LimitExceeded {
      const has = countOf.get(domain.accountKey)?.n ?? 0;
      if (has >= most && !find.get(domain.accountKey, domain.name)) return { over: has };
      const { changes, lastInsertRowid } = insert.run(cellsOf(written, domain));
      return changes > 0 ? Number(lastInsertRowid) : null;
    },
    saveDomain(domain: SenderDomain): boolean {
      if (save.run(cellsOf(written, domain)).changes === 0) return false;
      noteTrackingName(domain);
      return true;
    },
    deleteDomain(arg: { accountKey: number; name: string }): boolean {
      return remove.run(arg.accountKey, arg.name).changes > 0;
    },
  };
}

const { placeholder } = sql;

/** Domains that are read at once, of all accounts. */
const mostToCheck = 2000;

/** A domain or one of its keys is not yet seen in the DNS. */
const waitsForDns = or(
  eq(table.status, "pending"),
  sql`EXISTS (SELECT 1 FROM json_each(${table.dkimKeys}) WHERE value ->> 'status' = 'pending')`,
);

function createDomainLookups(client: Database) {
  const db = drizzle({ client });
  const domainByName = db
    .select()
    .from(table)
    .where(and(eq(table.accountKey, placeholder("accountKey")), eq(table.name, placeholder("name"))))
    .prepare();
  const domainCount = db
    .select({ n: count() })
    .from(table)
    .where(eq(table.accountKey, placeholder("accountKey")))
    .prepare();
  const domainsOf = db
    .select()
    .from(table)
    .where(eq(table.accountKey, placeholder("accountKey")))
    .orderBy(asc(table.name))
    .prepare();
  // Of each account its first ones before anybody's second: no account's many are in the way of others' few.
  const ranked = db
    .select({
      key: table.key,
      place: sql<number>`row_number() OVER (PARTITION BY ${table.accountKey} ORDER BY ${table.checkedAt})`.as(
        "place",
      ),
    })
    .from(table)
    .where(
      and(
        ne(table.status, "suspended"),
        or(
          isNull(table.checkedAt),
          and(waitsForDns, lt(table.checkedAt, placeholder("pendingBefore"))),
          lt(table.checkedAt, placeholder("othersBefore")),
        ),
      ),
    )
    .as("ranked");
  const domainsToCheck = db
    .select(getTableColumns(table))
    .from(ranked)
    .innerJoin(table, eq(table.key, ranked.key))
    .where(lte(ranked.place, placeholder("limit")))
    .orderBy(asc(ranked.place), asc(table.checkedAt))
    .limit(mostToCheck)
    .prepare();

  return {
    domainByName: (accountKey: number, name: string) => domainByName.get({ accountKey, name }) ?? null,
    countDomains: (accountKey: number) => domainCount.get({ accountKey })?.n ?? 0,
    domains: (accountKey: number) => domainsOf.all({ accountKey }),
    domainsToCheck: (pendingBefore: number, othersBefore: number, limit: number) =>
      domainsToCheck.all({ pendingBefore, othersBefore, limit }),
    isTrackingName: createTrackingNameLookup(client),
  };
}

export const domains = noun({
  commands: createDomainWrites,
  touches: {
    createDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
    saveDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
    deleteDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
  },
  lookups: createDomainLookups,
  lists: (db) => ({ trackingNames: createTrackingNameList(db) }),
  calls: ({ write, lookups, lists, rows }): DomainStore => ({
    async createDomain(domain, most) {
      const key = within(await write.createDomain({ ...domain, ...mostOf(most) }));
      return key === null ? null : { ...domain, key };
    },
    domainByName: async (accountKey, name) =>
      rows.get(`domain ${accountKey} ${name}`, () => lookups.domainByName(accountKey, name)),
    countDomains: async (accountKey) => lookups.countDomains(accountKey),
    listDomains: async (accountKey) => lookups.domains(accountKey),
    domainsToCheck: async (pendingBefore, othersBefore, limit) =>
      lookups.domainsToCheck(pendingBefore, othersBefore, limit),
    isTrackingName: async (name) => lookups.isTrackingName(name),
    trackingNames: (ofAccount, ofAll) => lists.trackingNames({ ofAccount, ofAll }),
    saveDomain: (domain) => write.saveDomain(domain),
    deleteDomain: (accountKey, name) => write.deleteDomain({ accountKey, name }),
  }),
});
