// MTA-STS policies, one a recipient domain. Each write takes expired ones with it.
import type { Database, Statement } from "better-sqlite3";
import type { KeptMtaStsPolicy } from "../../model/mta-sts.ts";
import { nothing } from "../changes.ts";
import type { MtaStsStore } from "../interface/mta-sts.ts";
import { none, noun } from "./noun.ts";

/** Expired ones that one write removes. */
const removedAtOnce = 100;

type Row = Omit<KeptMtaStsPolicy, "mx"> & { mx: string };

function createMtaStsWrites(db: Database) {
  const put = db.prepare(
    `INSERT INTO mta_sts_policies (domain, id, mode, mx, fetched_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (domain) DO UPDATE SET id = excluded.id, mode = excluded.mode, mx = excluded.mx,
     fetched_at = excluded.fetched_at, expires_at = excluded.expires_at`,
  );
  const remove = db.prepare(
    `DELETE FROM mta_sts_policies WHERE domain IN
     (SELECT domain FROM mta_sts_policies WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`,
  );
  return {
    putMtaStsPolicy({ policy }: { policy: KeptMtaStsPolicy }): void {
      const { domain, id, mode, mx, fetchedAt, expiresAt } = policy;
      put.run(domain, id, mode, JSON.stringify(mx), fetchedAt, expiresAt);
      remove.run(fetchedAt, removedAtOnce);
    },
  };
}

export const mtaSts = noun({
  commands: createMtaStsWrites,
  touches: { putMtaStsPolicy: nothing }, // a policy shows nowhere
  lookups(db: Database) {
    const find: Statement<[string], Row> = db.prepare(
      `SELECT domain, id, mode, mx, fetched_at AS fetchedAt, expires_at AS expiresAt
       FROM mta_sts_policies WHERE domain = ?`,
    );
    return {
      mtaStsPolicy(domain: string): KeptMtaStsPolicy | null {
        const row = find.get(domain);
        return row ? { ...row, mx: JSON.parse(row.mx) as string[] } : null;
      },
    };
  },
  lists: none,
  calls: ({ write, lookups }): MtaStsStore => ({
    mtaStsPolicy: async (domain) => lookups.mtaStsPolicy(domain),
    putMtaStsPolicy: (policy) => write.putMtaStsPolicy({ policy }),
  }),
});
