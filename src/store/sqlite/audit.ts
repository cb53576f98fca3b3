// The audit log: who did what, from where. A row is written in the transaction of the act that it records, or by
// itself where there is none. Of a key's or login's use the table takes one row for each address and day, whatever is
// asked of it. Rows go by their time (retention.audit), the oldest first.
import type { Database, Statement } from "better-sqlite3";
import type { AuditEntry, AuditFilter, AuditRecord } from "../../model/audit.ts";
import type { Cell } from "../message-packing.ts";
import { nothing } from "../changes.ts";
import { pageAt, pageOf, walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import type { AuditStore } from "../interface/audit.ts";
import { none, noun, type Writing } from "./noun.ts";
import type { Sequences } from "./sequences.ts";

export interface AuditWrites {
  /** False: it stands there already. */
  record(entry: AuditEntry): boolean;
  /** Removes up to `limit` rows that are older; answers how many. */
  purge(before: number, limit: number): number;
}

export function createAuditWrites(db: Database, sequences: Sequences): AuditWrites {
  const insert = db.prepare(
    `INSERT INTO audit (seq, at, account_key, actor_kind, actor, source_ip, request_id, action, target, times, detail)
     VALUES (@seq, @at, @accountKey, @actorKind, @actor, @sourceIp, @requestId, @action, @target, @times, @detail)
     ON CONFLICT (actor, source_ip, at / 86400000) WHERE action IN ('keys.used', 'smtp_credentials.used') DO NOTHING`,
  );
  const remove = db.prepare(
    "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
  );
  return {
    record(entry) {
      const row = { ...entry, seq: sequences.next("audit"), detail: JSON.stringify(entry.detail) };
      return insert.run(row).changes > 0;
    },
    purge: (before, limit) => remove.run(before, limit).changes,
  };
}

type Row = Omit<AuditRecord, "detail"> & { detail: string };
/** Newest first: from before (`at`, `seq`) down to (`lastAt`, `lastSeq`). */
type Range = Record<"at" | "seq" | "lastAt" | "lastSeq", number>;

export function createAuditLists(db: Database) {
  const range = "(a.at, a.seq) < (@at, @seq) AND (a.at, a.seq) >= (@lastAt, @lastSeq)";
  const order = "ORDER BY a.at DESC, a.seq DESC";
  const walked: Statement<[Range], { at: number; seq: number }> = db.prepare(
    `SELECT a.at, a.seq FROM audit a WHERE ${range} ${order} LIMIT 1 OFFSET ${walkLimit - 1}`,
  );
  const list: Statement<[Range & Record<string, Cell>], Row> = db.prepare(
    `SELECT a.seq, a.at, a.account_key AS accountKey, o.name AS account, a.actor_kind AS actorKind, a.actor, a.source_ip AS sourceIp,
       a.request_id AS requestId, a.action, a.target, a.times, a.detail
     FROM audit a LEFT JOIN accounts o ON o.key = a.account_key
     WHERE ${range} AND (@accountKey IS NULL OR a.account_key = @accountKey) AND (@actor IS NULL OR a.actor = @actor)
       AND (@target IS NULL OR a.target = @target) AND (@action IS NULL OR a.action = @action)
       AND (@family IS NULL OR substr(a.action, 1, length(@family)) = @family)
     ${order} LIMIT @limit`,
  );

  return {
    listAudit({ filter, page }: { filter: AuditFilter; page: PageAt }): PageFound<AuditRecord> {
      const [at = filter.until ?? Number.MAX_SAFE_INTEGER, seq = 0] = (page.after ?? []).map(Number);
      const from = { at, seq, lastAt: filter.since ?? 0, lastSeq: 0 };
      const bound = walked.get(from);
      const family = filter.action?.endsWith("*") ? filter.action.slice(0, -1) : null;
      const found = list.all({
        ...from,
        ...(bound ? { lastAt: bound.at, lastSeq: bound.seq } : {}),
        accountKey: filter.accountKey ?? null,
        actor: filter.actor ?? null,
        target: filter.target ?? null,
        action: family === null ? (filter.action ?? null) : null,
        family,
        limit: page.limit + 1,
      });
      const rows = found
        .slice(0, page.limit)
        .map((row): AuditRecord => ({ ...row, detail: JSON.parse(row.detail) }));
      const last = found.length > page.limit ? rows.at(-1) : bound;
      return { rows, next: last ? [last.at, last.seq] : null, hasMore: last !== undefined };
    },
  };
}

export const audit = noun({
  commands: (_db: Database, { audit: log }: Writing) => ({
    recordAudit({ entries }: { entries: AuditEntry[] }): void {
      for (const entry of entries) log.record(entry);
    },
  }),
  touches: {
    recordAudit: nothing, // its answers are composed on each request
  },
  lookups: none,
  lists: createAuditLists,
  calls: ({ write, lists }): AuditStore => ({
    recordAudit: (entries) => write.recordAudit({ entries }),
    listAudit: async (filter, page) =>
      pageOf("u", await lists.listAudit({ filter, page: pageAt("u", page, ["number", "number"]) })),
  }),
});
