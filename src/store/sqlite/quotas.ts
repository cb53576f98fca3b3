// How many messages a key or account with a quota had accepted today: one row each, for the day that it was last
// raised on. Counted in the transaction of the acceptance, so that no number of senders at once passes the limit; of
// those without a quota nothing is counted. A mail can begin before midnight and end after it: it counts on the day
// that has begun, or each such mail would give that day's quota back.
import type { Database, Statement } from "better-sqlite3";
import { dayMs } from "../../clock.ts";
import type { Quota } from "../../model/limits.ts";

const dayOf = (at: number): number => Math.floor(at / dayMs);

/** The first quota that `times` messages more would pass; null: none. */
export type QuotaView = (quotas: Quota[], at: number, times: number) => Quota | null;

export function createQuotaView(db: Database): QuotaView {
  const find: Statement<[{ kind: string; owner: number; day: number }], { used: number }> = db.prepare(
    "SELECT used FROM quota_uses WHERE kind = @kind AND owner = @owner AND day BETWEEN @day AND @day + 1",
  );
  return (quotas, at, times) =>
    quotas.find(
      ({ kind, owner, limit }) => (find.get({ kind, owner, day: dayOf(at) })?.used ?? 0) + times > limit,
    ) ?? null;
}

export function createQuotas(db: Database): { passed: QuotaView; use(quotas: Quota[], at: number): void } {
  const raise = db.prepare(
    `INSERT INTO quota_uses (kind, owner, day, used) VALUES (?, ?, ?, 1)
     ON CONFLICT (kind, owner) DO UPDATE SET used = iif(day - excluded.day IN (0, 1), used, 0) + 1,
       day = iif(day - excluded.day = 1, day, excluded.day)`,
  );
  return {
    passed: createQuotaView(db),
    use(quotas, at) {
      for (const { kind, owner } of quotas) raise.run(kind, owner, dayOf(at));
    },
  };
}
