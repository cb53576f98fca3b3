// Names that were ever a verified domain's tracking name with its record seen. The links of mail that was sent lead to
// them for ever, so a name stays one when its domain takes another or is deleted.
import type { Database, Statement } from "better-sqlite3";
import { seenTrackingName, type SenderDomain } from "../../model/domain.ts";

/** Of one account, far more than it may have domains: who publishes a wildcard could make names without end. */
export const mostTrackingNames = 10_000;

export function createTrackingNameWrite(db: Database): (domain: SenderDomain) => void {
  // A new key each time: keys are in the order in which names were last seen, whatever the clock does.
  const note = db.prepare("INSERT OR REPLACE INTO tracking_names (account_key, name) VALUES (?, ?)");
  const trim = db.prepare(
    `DELETE FROM tracking_names WHERE key IN
       (SELECT key FROM tracking_names WHERE account_key = ? ORDER BY key DESC LIMIT -1 OFFSET ${mostTrackingNames})`,
  );
  return (domain) => {
    const name = domain.verifiedAt === null ? null : seenTrackingName(domain);
    if (name === null) return;
    note.run(domain.accountKey, name);
    trim.run(domain.accountKey);
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
  const list: Statement<[number, number], { name: string; accountKey: number }> = db.prepare(
    `WITH RECURSIVE owners (account_key) AS (
       SELECT min(account_key) FROM tracking_names
       UNION ALL
       SELECT (SELECT min(account_key) FROM tracking_names AS later WHERE later.account_key > owners.account_key)
       FROM owners WHERE owners.account_key IS NOT NULL),
     newest AS (
       SELECT name, account_key, row_number() OVER (PARTITION BY account_key ORDER BY key DESC) AS place
       FROM tracking_names WHERE key IN (
         SELECT one.key FROM owners JOIN tracking_names AS one ON one.key IN (
           SELECT key FROM tracking_names AS own WHERE own.account_key = owners.account_key ORDER BY key DESC LIMIT ?)))
     SELECT name, account_key AS accountKey FROM newest ORDER BY place, account_key LIMIT ?`,
  );
  return ({ ofAccount, ofAll }) => list.all(ofAccount, ofAll);
}
