// Records events: the body as it was written, once, and a delivery for every endpoint of the account that
// subscribed to the type, paused ones too (their events wait). `seq` is the order of commits.
import type { Database } from "better-sqlite3";
import type { NewEvent } from "../../model/event.ts";
import type { Tally } from "../batch-counters.ts";

export function createEventWrites(db: Database, tally: Tally) {
  const insert = db.prepare(
    `INSERT INTO events (id, account_key, type, occurred_at, received_at, message_key, recipient, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const fanOut = db.prepare(
    `INSERT INTO deliveries (endpoint_key, event_seq, status, attempts, due_at, leased)
     SELECT key, ?, 'pending', 0, 0, 0 FROM endpoints WHERE account_key = ? AND event_mask & ? <> 0`,
  );
  return {
    recordEvent(e: NewEvent): void {
      const { lastInsertRowid } = insert.run(
        e.id,
        e.accountKey,
        e.type,
        e.occurredAt,
        e.receivedAt,
        e.messageKey,
        e.recipient,
        e.body,
      );
      fanOut.run(lastInsertRowid, e.accountKey, e.typeBit);
      tally.events = true;
      if (e.counters !== 0)
        tally.counted.push({ facts: e.facts, at: e.occurredAt, counters: e.counters, times: 1 });
    },
  };
}
