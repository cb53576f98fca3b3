// The suppression list, by address. The start of an address is served by the index; any other filter walks at most
// 20,000 rows a page.
import type { Database } from "better-sqlite3";
import type { Suppression, SuppressionFilter } from "../../model/suppression.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { suppressionColumns } from "./suppression-columns.ts";

type Params = Record<string, Cell>;

/** After every string that begins with the same text. */
const lastCharacter = "\u{10ffff}";

export function createSuppressionLists(db: Database) {
  return {
    /** By address; what has expired is not shown. */
    listSuppressions(arg: {
      accountKey: number;
      filter: SuppressionFilter;
      page: PageAt;
      now: number;
    }): PageFound<Suppression> {
      const { filter, page } = arg;
      const params: Params = {
        accountKey: arg.accountKey,
        now: arg.now,
        limit: page.limit + 1,
        walk: walkLimit - 1,
      };
      const range = ["account_key = @accountKey"];
      const others = ["(expires_at IS NULL OR expires_at > @now)"];
      if (page.after) {
        range.push("canonical > @after");
        params.after = page.after[0] ?? "";
      }
      if (filter.emailPrefix !== undefined) {
        range.push("canonical >= @prefix AND canonical < @prefixEnd");
        params.prefix = filter.emailPrefix.toLowerCase();
        params.prefixEnd = params.prefix + lastCharacter;
      }
      const where: [keyof SuppressionFilter, string][] = [
        ["reason", "reason = @reason"],
        ["source", "source = @source"],
        ["domain", "substr(canonical, -length(@domain) - 1) = '@' || @domain"],
        ["createdAfter", "created_at >= @createdAfter"],
        ["createdBefore", "created_at < @createdBefore"],
      ];
      for (const [name, condition] of where) {
        const value = filter[name];
        if (value === undefined) continue;
        others.push(condition);
        params[name] = value;
      }
      const bound = db
        .prepare<[Params], { canonical: string }>(
          `SELECT canonical FROM suppressions WHERE ${range.join(" AND ")} ORDER BY canonical LIMIT 1 OFFSET @walk`,
        )
        .get(params);
      if (bound) {
        range.push("canonical <= @bound");
        params.bound = bound.canonical;
      }
      const list = db
        .prepare<[Params], Suppression>(
          `SELECT ${suppressionColumns} FROM suppressions WHERE ${[...range, ...others].join(" AND ")} ORDER BY canonical LIMIT @limit`,
        )
        .all(params);
      const rows = list.slice(0, page.limit);
      const last = rows.at(-1);
      const next = list.length > page.limit && last ? [last.canonical] : bound ? [bound.canonical] : null;
      return { rows, next, hasMore: next !== null };
    },
  };
}
