// TLS results: a row a UTC day, recipient domain, policy and failure. They go once they were reported.
import type { Database, Statement } from "better-sqlite3";
import type { ReportedPolicy, TlsFailure, TlsResultCount } from "../../model/tls-result.ts";
import { nothing } from "../changes.ts";
import type { TlsResultDay, TlsResultStore } from "../interface/tls-results.ts";
import { none, noun } from "./noun.ts";

interface Row extends TlsResultDay {
  policy: string;
  /** Empty: none. */
  failure: string;
  reason: string;
  sessions: number;
}

function createTlsResultWrites(db: Database) {
  const add = db.prepare(
    `UPDATE tls_results SET sessions = sessions + @sessions
     WHERE day = @day AND domain = @domain AND policy = @policy AND failure = @failure`,
  );
  const insert = db.prepare(
    `INSERT INTO tls_results (day, domain, policy, failure, reason, sessions)
     VALUES (@day, @domain, @policy, @failure, @reason, @sessions)`,
  );
  const count: Statement<[number, string], { rows: number }> = db.prepare(
    "SELECT count(*) AS rows FROM tls_results WHERE day = ? AND domain = ?",
  );
  const remove = db.prepare("DELETE FROM tls_results WHERE day = ? AND domain = ?");
  return {
    addTlsResults({ counts, most }: { counts: TlsResultCount[]; most: number }): void {
      for (const { day, domain, policy, failure, reason, sessions } of counts) {
        const row: Row = {
          day,
          domain,
          policy: JSON.stringify(policy),
          failure: failure === null ? "" : JSON.stringify(failure),
          reason,
          sessions,
        };
        if (add.run(row).changes === 0 && (count.get(day, domain)?.rows ?? 0) < most) insert.run(row);
      }
    },
    removeTlsResults({ days }: { days: TlsResultDay[] }): void {
      for (const { day, domain } of days) remove.run(day, domain);
    },
  };
}

function createTlsResultLists(db: Database) {
  const days: Statement<[{ before: number; day: number; domain: string; limit: number }], TlsResultDay> =
    db.prepare(
      `SELECT DISTINCT day, domain FROM tls_results WHERE day < @before AND (day, domain) > (@day, @domain)
       ORDER BY day, domain LIMIT @limit`,
    );
  const results: Statement<[number, string], Row> = db.prepare(
    "SELECT day, domain, policy, failure, reason, sessions FROM tls_results WHERE day = ? AND domain = ?",
  );
  return {
    tlsResultDays: (arg: { before: number; after: TlsResultDay | null; limit: number }): TlsResultDay[] =>
      days.all({ before: arg.before, limit: arg.limit, ...(arg.after ?? { day: -1, domain: "" }) }),
    tlsResults: ({ day, domain }: TlsResultDay): TlsResultCount[] =>
      results.all(day, domain).map((row) => ({
        ...row,
        policy: JSON.parse(row.policy) as ReportedPolicy,
        failure: row.failure === "" ? null : (JSON.parse(row.failure) as TlsFailure),
      })),
  };
}

export const tlsResults = noun({
  commands: createTlsResultWrites,
  touches: { addTlsResults: nothing, removeTlsResults: nothing }, // they show nowhere
  lookups: none,
  lists: createTlsResultLists,
  calls: ({ write, lists }): TlsResultStore => ({
    addTlsResults: (counts, most) => write.addTlsResults({ counts, most }),
    tlsResultDays: (before, after, limit) => lists.tlsResultDays({ before, after, limit }),
    tlsResults: (of) => lists.tlsResults(of),
    removeTlsResults: (days) => write.removeTlsResults({ days }),
  }),
});
