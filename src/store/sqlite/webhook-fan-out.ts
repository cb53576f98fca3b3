// Which endpoints an event goes to: those of its account that subscribed to its type, paused ones too (their events wait). It
// is queued for the first few in the transaction that records it. The rest of an account with more follows in pieces, each a
// write of that account, so that no other account's write waits for fifty endpoints. A piece has up to a hundred events for a
// few endpoints: an endpoint's deliveries are neighbours, and ten events for fifty endpoints wrote five times as much.
import type { Database, Statement } from "better-sqlite3";
import type { FanOutPiece } from "../interface/webhooks.ts";
import type { Tally } from "../batch-counters.ts";

/** Endpoints that get an event with its record. */
const atOnce = 6;
/** Deliveries that one piece queues at the most: a millisecond. */
const pieceSize = 500;
/** That are queued for one endpoint after the other. */
const mostEvents = 100;

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
  const newest: Statement<[number, number], { seq: number; n: number }> = db.prepare(
    `SELECT max(event_seq) AS seq, count(*) AS n
     FROM (SELECT event_seq FROM fan_outs WHERE account_key = ? ORDER BY event_seq LIMIT ?) HAVING n > 0`,
  );
  const waiting: Statement<[number, number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM fan_outs WHERE account_key = ? AND event_seq <= ?",
  );
  const next: Statement<[number, number, number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE account_key = ? AND key > ? ORDER BY key LIMIT ?",
  );
  // What is there was queued with the event or by a piece that is repeated, and was perhaps replayed. An endpoint that was made
  // meanwhile gets the event too: times of a clock that went back would leave out one that was there.
  const queue = db.prepare(
    `INSERT OR IGNORE INTO deliveries (endpoint_key, event_seq, status, attempts, due_at)
     SELECT w.key, f.event_seq, 'pending', 0, 0
     FROM endpoints w CROSS JOIN fan_outs f ON f.account_key = w.account_key CROSS JOIN events e ON e.seq = f.event_seq
     WHERE w.key = ? AND f.event_seq <= ? AND w.event_mask & f.type_bit <> 0 ORDER BY f.event_seq`,
  );
  const done = db.prepare("DELETE FROM fan_outs WHERE account_key = ? AND event_seq <= ?");
  /** What the piece before has left; else the events that have waited longest, from the first endpoint on. */
  const left = (accountKey: number, before: FanOutPiece | null) => {
    if (before?.endpointKey != null) {
      const n = waiting.get(accountKey, before.seq)?.n ?? 0;
      if (n > 0) return { seq: before.seq, n, from: before.endpointKey };
    }
    const first = newest.get(accountKey, mostEvents);
    return first && { ...first, from: 0 };
  };
  return {
    /**
     * A piece of what waits of an account; null: nothing waited. The events stay until their last piece, so one that begins
     * again, after a death or beside another's, repeats what is queued already. Only an endpoint whose types were changed
     * meanwhile gets what it did not ask for before.
     */
    fanOut({ accountKey, before }: { accountKey: number; before: FanOutPiece | null }): FanOutPiece | null {
      const range = left(accountKey, before);
      if (!range) return null;
      const { seq, n, from } = range;
      const most = Math.max(1, Math.floor(pieceSize / n));
      const endpoints = next.all(accountKey, from, most + 1);
      for (const { key } of endpoints.slice(0, most))
        if (queue.run(key, seq).changes > 0) tally.deliveries = true;
      if (endpoints.length > most) return { seq, endpointKey: endpoints[most - 1]?.key ?? null };
      done.run(accountKey, seq);
      return { seq, endpointKey: null };
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
