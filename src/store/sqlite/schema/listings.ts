// What blocklists say of addresses, and the operator's zones.
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Steps } from "../engine/migrate.ts";
import type { ListingAnswer } from "../../../model/listing.ts";

/** By address as receivers see it; `codes` is JSON. */
export const dnsblListings = sqliteTable(
  "dnsbl_listings",
  {
    address: text("address").notNull(),
    zone: text("zone").notNull(),
    answer: text("answer").$type<ListingAnswer>().notNull(),
    detail: text("detail"),
    lookedAt: integer("looked_at").notNull(),
    codes: text("codes").notNull(),
    reason: text("reason"),
    listedAt: integer("listed_at"),
    changedAt: integer("changed_at"),
  },
  (table) => [primaryKey({ columns: [table.address, table.zone] })],
);

/** Added to those of the configuration (`watched` 1), or removed from them (0); `codes` is JSON. */
export const dnsblZones = sqliteTable("dnsbl_zones", {
  zone: text("zone").primaryKey(),
  watched: integer("watched").notNull(),
  name: text("name"),
  codes: text("codes"),
  removalUrl: text("removal_url"),
});

export const steps: Steps = {
  5: `
CREATE TABLE dnsbl_listings (
  address TEXT NOT NULL, zone TEXT NOT NULL, answer TEXT NOT NULL, detail TEXT, looked_at INTEGER NOT NULL,
  codes TEXT NOT NULL, reason TEXT, listed_at INTEGER, changed_at INTEGER, PRIMARY KEY (address, zone)
) STRICT, WITHOUT ROWID;
CREATE TABLE dnsbl_zones (
  zone TEXT NOT NULL PRIMARY KEY, watched INTEGER NOT NULL, name TEXT, codes TEXT, removal_url TEXT
) STRICT, WITHOUT ROWID;
`,
};
