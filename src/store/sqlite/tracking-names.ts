// Names that were ever a verified domain's tracking name with its record seen. The links of mail that was sent lead to
// them for ever, so a name stays one when its domain takes another or is deleted.
import type { Database, Statement } from "better-sqlite3";
import { seenTrackingName, type SenderDomain } from "../../model/domain.ts";

/** Of one account, far more than it may have domains: who publishes a wildcard could make names without end. */
export const mostTrackingNames = 10_000;

export function createTrackingNameWrite(db: Database): (domain: SenderDomain) => void {
  const note = db.prepare(
    `INSERT INTO tracking_names (name, account_key, seen)
     VALUES (@name, @accountKey, (SELECT coalesce(max(seen), 0) + 1 FROM tracking_names WHERE account_key = @accountKey))
     ON CONFLICT (name, account_key) DO UPDATE SET seen = excluded.seen`,
  );
  const trim = db.prepare(
    `DELETE FROM tracking_names WHERE account_key = @accountKey AND seen <=
       (SELECT seen FROM tracking_names WHERE account_key = @accountKey ORDER BY seen DESC LIMIT 1 OFFSET ${mostTrackingNames})`,
  );
  return (domain) => {
    const name = domain.verifiedAt === null ? null : seenTrackingName(domain);
    if (name === null) return;
    const { accountKey } = domain;
    note.run({ accountKey, name });
    trim.run({ accountKey });
  };
}

export function createTrackingNameLookup(db: Database): (name: string) => boolean {
  const find: Statement<[string], object> = db.prepare("SELECT 1 FROM tracking_names WHERE name = ? LIMIT 1");
  return (name) => find.get(name) !== undefined;
}

/** The newest of each account, found by the index: an account has up to `mostTrackingNames`. */
export function createTrackingNameList(
  db: Database,
): (most: { ofAccount: number; ofAll: number }) => { name: string; accountKey: number }[] {
  const list: Statement<[{ ofAccount: number; ofAll: number }], { name: string; accountKey: number }> =
    db.prepare(
      `WITH RECURSIVE owners (account_key) AS (
       SELECT min(account_key) FROM tracking_names
       UNION ALL
       SELECT (SELECT min(account_key) FROM tracking_names AS later WHERE later.account_key > owners.account_key)
       FROM owners WHERE owners.account_key IS NOT NULL),
     newest AS (
       SELECT name, own.account_key, row_number() OVER (PARTITION BY own.account_key ORDER BY seen DESC) AS place
       FROM owners JOIN tracking_names AS own ON own.account_key = owners.account_key AND own.seen >= coalesce((
         SELECT seen FROM tracking_names AS one WHERE one.account_key = owners.account_key
         ORDER BY seen DESC LIMIT 1 OFFSET @ofAccount - 1), 0))
     SELECT name, account_key AS accountKey FROM newest WHERE place <= @ofAccount
     ORDER BY place, account_key LIMIT @ofAll`,
    );
  return (most) => list.all(most);
}
