// The suppression list, by address. The start of an address is served by the index; any other filter walks at most
// 20,000 rows a page.
import type { Database } from "better-sqlite3";
import type {
  Suppression,
  SuppressionCount,
  SuppressionFilter,
  SuppressionReason,
} from "../../model/suppression.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { suppressionColumns } from "./suppression-columns.ts";

type Params = Record<string, Cell>;

/** After every string that begins with the same text. */
const lastCharacter = "\u{10ffff}";

interface Asked {
  accountKey: number;
  filter: SuppressionFilter;
  now: number;
}

export function createSuppressionLists(db: Database) {
  /** The conditions of what is asked for, of at most 20,000 rows after `after`; `bound`: the last of them, null where that was all. */
  const walkOf = ({ accountKey, filter, now }: Asked, after: Cell) => {
    const params: Params = { accountKey, now, walk: walkLimit - 1 };
    const range = ["account_key = @accountKey"];
    const others = ["(expires_at IS NULL OR expires_at > @now)"];
    if (after !== null) {
      range.push("canonical > @after");
      params.after = after;
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
    const bound =
      db
        .prepare<[Params], { canonical: string }>(
          `SELECT canonical FROM suppressions WHERE ${range.join(" AND ")} ORDER BY canonical LIMIT 1 OFFSET @walk`,
        )
        .get(params)?.canonical ?? null;
    if (bound !== null) {
      range.push("canonical <= @bound");
      params.bound = bound;
    }
    return { where: [...range, ...others].join(" AND "), params, bound };
  };

  return {
    /** By address; what has expired is not shown. */
    listSuppressions({ page, ...asked }: Asked & { page: PageAt }): PageFound<Suppression> {
      const { where, params, bound } = walkOf(asked, page.after?.[0] ?? null);
      const list = db
        .prepare<[Params], Suppression>(
          `SELECT ${suppressionColumns} FROM suppressions WHERE ${where} ORDER BY canonical LIMIT @limit`,
        )
        .all({ ...params, limit: page.limit + 1 });
      const rows = list.slice(0, page.limit);
      const last = rows.at(-1);
      const next = list.length > page.limit && last ? [last.canonical] : bound === null ? null : [bound];
      return { rows, next, hasMore: next !== null };
    },

    /** A piece of the list, counted; `next`: the last address of it, null where that was all. */
    countSuppressions({ after, ...asked }: Asked & { after: string | null }): SuppressionCount {
      const { where, params, bound } = walkOf(asked, after);
      const counted = db
        .prepare<[Params], { reason: SuppressionReason; n: number }>(
          `SELECT reason, count(*) AS n FROM suppressions WHERE ${where} GROUP BY reason`,
        )
        .all(params);
      return { byReason: Object.fromEntries(counted.map(({ reason, n }) => [reason, n])), next: bound };
    },
  };
}
