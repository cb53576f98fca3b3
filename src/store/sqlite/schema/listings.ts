// What blocklists say of addresses, and the operator's zones.
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
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
