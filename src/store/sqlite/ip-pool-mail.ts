// Whether mail waits for a pool, which one seek in the index of each kind tells.
import type { Database, Statement } from "better-sqlite3";
import { holderOf, isLeased, operatorHolderOf } from "./held-mail.ts";

/** `scheduledQueues`: how the scheduled queues of the pool's mail begin. */
export function createPoolMail(db: Database): (accountKey: number, scheduledQueues: string) => boolean {
  const waits: Statement<[string, string], { found: number }> = db.prepare(
    "SELECT 1 AS found FROM recipients INDEXED BY recipients_waiting WHERE due_at IS NOT NULL AND queue_name >= ? AND queue_name < ? LIMIT 1",
  );
  // What is in flight at once is bounded; held mail is not, so one held recipient of the account stands for all.
  const inFlight: Statement<[string, string], { found: number }> = db.prepare(
    `SELECT 1 AS found FROM recipients INDEXED BY recipients_leased WHERE ${isLeased} AND queue_name >= ? AND queue_name < ? LIMIT 1`,
  );
  const onHold: Statement<[string], { found: number }> = db.prepare(
    "SELECT 1 AS found FROM recipients INDEXED BY recipients_leased WHERE lease_owner = ? LIMIT 1",
  );

  return (accountKey, scheduledQueues) => {
    const before = `${scheduledQueues}\u{10ffff}`;
    const found =
      waits.get(scheduledQueues, before) ??
      inFlight.get(scheduledQueues, before) ??
      onHold.get(holderOf(accountKey)) ??
      onHold.get(operatorHolderOf(accountKey));
    return found !== undefined;
  };
}
