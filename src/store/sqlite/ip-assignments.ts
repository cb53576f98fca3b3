// Which account an address belongs to. While one account sends, all addresses are its own and nothing is written down;
// where several do, the operator assigns them, and an address in a pool always belongs to the pool's account: what the
// one account has when a second is created is assigned to it in that transaction (accounts.ts). The account of the
// appliance's own mail does not count as one that sends.
import type { Database, Statement } from "better-sqlite3";
import { operationsAccount } from "../../model/account.ts";
import type { AssignResult, IpAssignment } from "../../model/ip-assignment.ts";

/** SQL: more than one account sends. */
const severalSend = `(SELECT count(*) FROM accounts WHERE status <> 'deleted' AND name <> '${operationsAccount}') > 1`;
const columns = `s.address, s.account_key AS accountKey, a.name AS account, s.assigned_at AS assignedAt,
  (SELECT p.name FROM ip_addresses i JOIN ip_pools p ON p.key = i.pool_key WHERE i.address = s.address) AS pool
  FROM ip_assignments s JOIN accounts a ON a.key = s.account_key`;

const inserting =
  "INSERT INTO ip_assignments (address, account_key, assigned_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";

export function createAssignmentRows(db: Database) {
  const all: Statement<[], IpAssignment> = db.prepare(`SELECT ${columns} ORDER BY s.address`);
  const one: Statement<[string], IpAssignment> = db.prepare(`SELECT ${columns} WHERE s.address = ?`);
  const several: Statement<[], { yes: number }> = db.prepare(`SELECT ${severalSend} AS yes`);
  const find = (address: string): IpAssignment | null => one.get(address) ?? null;
  return {
    all: () => all.all(),
    find,
    several: () => several.get()?.yes === 1,
    /** The account may put it into a pool. */
    isOwn(accountKey: number, address: string): boolean {
      const owner = find(address)?.accountKey;
      return owner === undefined ? several.get()?.yes !== 1 : owner === accountKey;
    },
    /** It belongs to another account. */
    isAnothers(accountKey: number, address: string): boolean {
      const owner = find(address)?.accountKey;
      return owner !== undefined && owner !== accountKey;
    },
  };
}

/** An address that was put into a pool belongs to its account. */
export function createAssignmentOfAdded(db: Database) {
  const { several } = createAssignmentRows(db);
  const insert = db.prepare(inserting);
  return (accountKey: number, address: string, at: number): void => {
    if (several()) insert.run(address, accountKey, at);
  };
}

export function createAssignmentWrites(db: Database) {
  const rows = createAssignmentRows(db);
  const insert = db.prepare(inserting);
  const remove = db.prepare("DELETE FROM ip_assignments WHERE address = ?");
  const poolOf: Statement<[string], { accountKey: number; account: string; poolKey: number }> = db.prepare(
    `SELECT p.account_key AS accountKey, a.name AS account, p.key AS poolKey FROM ip_addresses i
     JOIN ip_pools p ON p.key = i.pool_key JOIN accounts a ON a.key = p.account_key WHERE i.address = ?`,
  );
  const leavePool = db.prepare("DELETE FROM ip_addresses WHERE address = ?");
  const touchPool = db.prepare("UPDATE ip_pools SET updated_at = ? WHERE key = ?");

  return {
    assignAddress(arg: { accountKey: number; address: string; at: number }): AssignResult {
      const { accountKey, address, at } = arg;
      const before = rows.find(address);
      if (before && before.accountKey !== accountKey)
        return { ok: false, why: "assigned", account: before.account };
      const pool = poolOf.get(address);
      if (pool && pool.accountKey !== accountKey) return { ok: false, why: "in_pool", account: pool.account };
      insert.run(address, accountKey, at);
      const assignment = rows.find(address);
      if (!assignment) throw new Error("the assignment that was written is not there");
      return { ok: true, assignment };
    },
    unassignAddress({ address, at }: { address: string; at: number }): IpAssignment | null {
      const assignment = rows.find(address);
      if (!assignment) return null;
      const pool = poolOf.get(address);
      if (pool) {
        leavePool.run(address);
        touchPool.run(at, pool.poolKey);
      }
      remove.run(address);
      return assignment;
    },
  };
}

/** What every account has in its pools belongs to it from now on. */
export function createPoolsAssigned(db: Database): (at: number) => void {
  const assign = db.prepare(
    `INSERT INTO ip_assignments (address, account_key, assigned_at)
     SELECT i.address, p.account_key, ? FROM ip_pools p JOIN ip_addresses i ON i.pool_key = p.key WHERE true ON CONFLICT DO NOTHING`,
  );
  return (at) => void assign.run(at);
}
