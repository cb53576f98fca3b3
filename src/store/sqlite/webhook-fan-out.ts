// Which endpoints an event goes to: those of its account that subscribed to its type, paused ones too (their events wait). It
// is queued for the first few in the transaction that records it. The rest of an account with more follows in pieces, each a
// write of that account, so that no other account's write waits for fifty endpoints.
import type { Database, Statement } from "better-sqlite3";
import type { Tally } from "../batch-counters.ts";

/** Endpoints that get an event with its record. */
const atOnce = 6;
/** Deliveries that one piece queues, about: two milliseconds. */
const pieceSize = 500;

/** Queues an event that is being recorded. */
export function createFanOut(db: Database, tally: Tally) {
  // `= +?`: SQLite compiles a statement again before each run if a value bound to an `=` or a LIMIT might change its plan, as
  // it might beside ORDER BY. With the plus it does not look at the value: this one, run twice a message, takes a fifth.
  const first = db.prepare(
    `INSERT INTO deliveries (endpoint_key, event_seq, status, attempts, due_at)
     SELECT key, ?, 'pending', 0, 0 FROM endpoints WHERE account_key = +? AND event_mask & ? <> 0 ORDER BY created_at, key LIMIT ${atOnce}`,
  );
  const later = db.prepare("INSERT INTO fan_outs (account_key, event_seq, type_bit) VALUES (?, ?, ?)");
  return (seq: number, accountKey: number, typeBit: number): void => {
    const { changes } = first.run(seq, accountKey, typeBit);
    if (changes > 0) tally.deliveries = true;
    if (changes === atOnce) later.run(accountKey, seq, typeBit);
  };
}

export function createFanOutWrites(db: Database, tally: Tally) {
  const endpoints: Statement<[number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM endpoints WHERE account_key = ?",
  );
  const next: Statement<[number, number], { seq: number; typeBit: number; event: number | null }> =
    db.prepare(
      `SELECT f.event_seq AS seq, f.type_bit AS typeBit, e.seq AS event
       FROM fan_outs f LEFT JOIN events e ON e.seq = f.event_seq WHERE f.account_key = ? ORDER BY f.event_seq LIMIT ?`,
    );
  // Those of the first few are there, and perhaps replayed. An endpoint that was made meanwhile gets the event too: times
  // of a clock that went back would leave out one that was there.
  const queue = db.prepare(
    `INSERT OR IGNORE INTO deliveries (endpoint_key, event_seq, status, attempts, due_at)
     SELECT key, ?, 'pending', 0, 0 FROM endpoints WHERE account_key = ? AND event_mask & ? <> 0`,
  );
  const done = db.prepare("DELETE FROM fan_outs WHERE account_key = ? AND event_seq <= ?");
  return {
    /** A piece of what waits of an account; the last event that was queued, null: nothing waited. */
    fanOut({ accountKey }: { accountKey: number }): number | null {
      const count = endpoints.get(accountKey)?.n ?? 0;
      const events = next.all(accountKey, Math.max(1, Math.ceil(pieceSize / Math.max(1, count))));
      const last = events.at(-1);
      if (!last) return null;
      for (const { seq, typeBit, event } of events)
        if (event !== null && queue.run(seq, accountKey, typeBit).changes > 0) tally.deliveries = true;
      done.run(accountKey, last.seq);
      return last.seq;
    },
  };
}

export function createFanOutLookups(db: Database) {
  const nextAccount: Statement<[number], { accountKey: number }> = db.prepare(
    "SELECT account_key AS accountKey FROM fan_outs WHERE account_key > ? ORDER BY account_key LIMIT 1",
  );
  const last: Statement<[number], { seq: number | null }> = db.prepare(
    "SELECT max(event_seq) AS seq FROM fan_outs WHERE account_key = +?",
  );
  return {
    accountsToFanOut(): number[] {
      const accounts: number[] = [];
      for (let found = nextAccount.get(0); found; found = nextAccount.get(found.accountKey))
        accounts.push(found.accountKey);
      return accounts;
    },
    /** The last event that waits; 0: none does. */
    lastToFanOut: (accountKey: number): number => last.get(accountKey)?.seq ?? 0,
  };
}
