// Sender domains: what changes them. A row is written whole from what a caller read of it, so each change raises its
// revision, and one that was made of an older state (a check of the DNS takes seconds) writes nothing.
import type { Database, Statement } from "better-sqlite3";
import type { SenderDomain } from "../../model/domain.ts";
import type { Over } from "./suppressions.ts";

export function createDomainWrites(db: Database) {
  const insert = db.prepare(
    `INSERT INTO domains (id, account_key, name, status, return_path_domain, records, dkim_keys, created_at, updated_at,
       verified_at, checked_at, failing_since, track_opens, track_clicks, tracking_domain, allow_subdomains, return_path_before, revision)
     VALUES (@id, @accountKey, @name, @status, @returnPathDomain, @records, @dkimKeys, @createdAt, @updatedAt,
       @verifiedAt, @checkedAt, @failingSince, @trackOpens, @trackClicks, @trackingDomain, @allowSubdomains, @returnPathBefore, @revision)
     ON CONFLICT (account_key, name) DO NOTHING`,
  );
  const countOf: Statement<[number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM domains WHERE account_key = ?",
  );
  const find = db.prepare("SELECT 1 FROM domains WHERE account_key = ? AND name = ?");
  const save = db.prepare(
    `UPDATE domains SET status = @status, return_path_domain = @returnPathDomain, records = @records, dkim_keys = @dkimKeys,
       updated_at = @updatedAt, verified_at = @verifiedAt, checked_at = @checkedAt, failing_since = @failingSince,
       track_opens = @trackOpens, track_clicks = @trackClicks, tracking_domain = @trackingDomain,
       allow_subdomains = @allowSubdomains, return_path_before = @returnPathBefore, revision = revision + 1
     WHERE key = @key AND revision = @revision`,
  );
  const remove = db.prepare("DELETE FROM domains WHERE account_key = ? AND name = ?");

  return {
    /** The key; null where the account has the domain already. */
    createDomain({
      most = Infinity,
      ...domain
    }: Omit<SenderDomain, "key"> & { most?: number }): number | null | Over {
      const has = countOf.get(domain.accountKey)?.n ?? 0;
      if (has >= most && !find.get(domain.accountKey, domain.name)) return { over: has };
      const { changes, lastInsertRowid } = insert.run(rowOf(domain));
      return changes > 0 ? Number(lastInsertRowid) : null;
    },
    saveDomain(domain: SenderDomain): boolean {
      return save.run(rowOf(domain)).changes > 0;
    },
    deleteDomain(arg: { accountKey: number; name: string }): boolean {
      return remove.run(arg.accountKey, arg.name).changes > 0;
    },
  };
}

function rowOf<T extends Omit<SenderDomain, "key">>(domain: T) {
  return {
    ...domain,
    records: JSON.stringify(domain.records),
    dkimKeys: JSON.stringify(domain.dkimKeys),
    trackOpens: domain.trackOpens ? 1 : 0,
    trackClicks: domain.trackClicks ? 1 : 0,
    allowSubdomains: domain.allowSubdomains ? 1 : 0,
  };
}
