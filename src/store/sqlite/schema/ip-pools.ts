// IP pools, the addresses in them, and whose an address is.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { Steps } from "../engine/migrate.ts";
import { accounts } from "./accounts.ts";

export const ipPools = sqliteTable(
  "ip_pools",
  {
    key: integer("key").primaryKey(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key, { onDelete: "cascade" }),
    name: text("name").notNull(),
    description: text("description"),
    /** The default pool of the account; where none is, `default` is. */
    chosen: integer("chosen").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [unique().on(table.accountKey, table.name)],
);

/** An address is in one pool of one account. `ptr` and `ptr_ok` are what the DNS said last; null: not looked at. */
export const ipAddresses = sqliteTable(
  "ip_addresses",
  {
    address: text("address").primaryKey(),
    poolKey: integer("pool_key")
      .notNull()
      .references(() => ipPools.key, { onDelete: "cascade" }),
    hostname: text("hostname"),
    weight: integer("weight").notNull(),
    paused: integer("paused").notNull(),
    /** null: it does not warm up. */
    warmupStartedAt: integer("warmup_started_at"),
    ptr: text("ptr"),
    ptrOk: integer("ptr_ok"),
    /** JSON: the zones that list it. */
    blacklists: text("blacklists").notNull().default("[]"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [
    index("ip_addresses_pool").on(table.poolKey),
    index("ip_addresses_warming")
      .on(table.warmupStartedAt)
      .where(sql`warmup_started_at IS NOT NULL`),
  ],
);

/** Whether the machine of a node has an address, as that node saw it last; no row: it has not looked. */
export const nodeAddresses = sqliteTable(
  "node_addresses",
  {
    address: text("address")
      .notNull()
      .references(() => ipAddresses.address, { onDelete: "cascade" }),
    node: text("node").notNull(),
    bindable: integer("bindable").notNull(),
  },
  (table) => [primaryKey({ columns: [table.address, table.node] })],
);

/** What an address has sent to a provider on a day of its warm-up, in days since 1970-01-01 UTC. */
export const warmupCounts = sqliteTable(
  "warmup_counts",
  {
    address: text("address").notNull(),
    provider: text("provider").notNull(),
    day: integer("day").notNull(),
    sent: integer("sent").notNull(),
  },
  (table) => [primaryKey({ columns: [table.day, table.address, table.provider] })],
);

/** Addresses that belong to an account, whether it has them in a pool or not. */
export const ipAssignments = sqliteTable(
  "ip_assignments",
  {
    address: text("address").primaryKey(),
    accountKey: integer("account_key")
      .notNull()
      .references(() => accounts.key),
    assignedAt: integer("assigned_at").notNull(),
  },
  (table) => [index("ip_assignments_account").on(table.accountKey)],
);

export const steps: Steps = {
  5: `
CREATE TABLE ip_pools (
  key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL REFERENCES accounts (key) ON DELETE CASCADE,
  name TEXT NOT NULL, description TEXT, chosen INTEGER NOT NULL, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, UNIQUE (account_key, name)
) STRICT;
CREATE TABLE ip_addresses (
  address TEXT NOT NULL PRIMARY KEY, pool_key INTEGER NOT NULL REFERENCES ip_pools (key) ON DELETE CASCADE,
  hostname TEXT, weight INTEGER NOT NULL, paused INTEGER NOT NULL, warmup_started_at INTEGER, ptr TEXT,
  ptr_ok INTEGER, blacklists TEXT NOT NULL DEFAULT '[]', created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ip_addresses_pool ON ip_addresses (pool_key);
CREATE INDEX ip_addresses_warming ON ip_addresses (warmup_started_at) WHERE warmup_started_at IS NOT NULL;
CREATE TABLE node_addresses (
  address TEXT NOT NULL REFERENCES ip_addresses (address) ON DELETE CASCADE, node TEXT NOT NULL,
  bindable INTEGER NOT NULL, PRIMARY KEY (address, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE warmup_counts (
  address TEXT NOT NULL, provider TEXT NOT NULL, day INTEGER NOT NULL, sent INTEGER NOT NULL,
  PRIMARY KEY (day, address, provider)
) STRICT, WITHOUT ROWID;
CREATE TABLE ip_assignments (
  address TEXT NOT NULL PRIMARY KEY, account_key INTEGER NOT NULL REFERENCES accounts (key),
  assigned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ip_assignments_account ON ip_assignments (account_key);
`,
};
