// Lists of suppressions and of the inbox, and the views of the queue: lanes, counts.
import type { Database, Statement } from "better-sqlite3";
import type { Cell } from "./acceptance.ts";
import type { PageAt, PageFound } from "./cursor.ts";
import { walkLimit } from "./message-lists.ts";
import type { InboxMail, QueueCounts, Store, Suppression } from "./store.ts";
import { suppressionColumns } from "./suppression-writes.ts";

type Params = Record<string, Cell>;
export type SuppressionFilter = Parameters<Store["listSuppressions"]>[1];

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

export function createInboxLists(db: Database) {
  const newest: Statement<[Params], InboxMail> = db.prepare(
    `SELECT i.key, m.id AS messageId, i.to_address AS "to", m.from_address AS "from", m.subject, i.caught_at AS caughtAt, m.size_bytes AS sizeBytes
     FROM inbox i CROSS JOIN messages m ON m.key = i.message_key
     WHERE i.account_key = @accountKey AND i.key < @before ORDER BY i.key DESC LIMIT @limit`,
  );
  return {
    /** Newest first. */
    listInbox(arg: { accountKey: number; page: PageAt }): PageFound<InboxMail> {
      const before = arg.page.after?.[0] ?? Number.MAX_SAFE_INTEGER;
      const list = newest.all({ accountKey: arg.accountKey, before, limit: arg.page.limit + 1 });
      const rows = list.slice(0, arg.page.limit);
      const last = rows.at(-1);
      const next = list.length > arg.page.limit && last ? [last.key] : null;
      return { rows, next, hasMore: next !== null };
    },
  };
}

export function createQueueViews(db: Database) {
  // One seek a lane: the first entry after a lane is the next lane with its earliest due time.
  const nextLane: Statement<[string], { lane: string; dueAt: number }> = db.prepare(
    `SELECT lane, due_at AS dueAt FROM recipients INDEXED BY recipients_waiting
     WHERE due_at IS NOT NULL AND lane > ? ORDER BY lane, due_at LIMIT 1`,
  );
  const waiting: Statement<[{ now: number }], { state: string; n: number; dueAt: number }> = db.prepare(
    `SELECT iif(state = 'scheduled' AND due_at <= @now, 'queued', state) AS state, count(*) AS n, min(due_at) AS dueAt
     FROM recipients INDEXED BY recipients_waiting WHERE due_at IS NOT NULL GROUP BY 1`,
  );
  const leased: Statement<[], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM recipients INDEXED BY recipients_leased WHERE lease_owner IS NOT NULL",
  );
  return {
    lanes(arg: { afterLane: string | null; limit: number }): { lane: string; dueAt: number }[] {
      const lanes: { lane: string; dueAt: number }[] = [];
      let after = arg.afterLane ?? ""; // no lane is the empty string
      while (lanes.length < arg.limit) {
        const next = nextLane.get(after);
        if (!next) break;
        lanes.push(next);
        after = next.lane;
      }
      return lanes;
    },
    queueCounts(arg: { now: number }): QueueCounts {
      const counts: QueueCounts = {
        scheduled: 0,
        queued: 0,
        deferred: 0,
        sending: leased.get()?.n ?? 0,
        oldestDueAt: null,
      };
      for (const { state, n, dueAt } of waiting.all(arg)) {
        if (state === "scheduled" || state === "queued" || state === "deferred") counts[state] += n;
        if (counts.oldestDueAt === null || dueAt < counts.oldestDueAt) counts.oldestDueAt = dueAt;
      }
      return counts;
    },
  };
}
