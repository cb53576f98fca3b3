// The recipients of a message that went out, each with the job that it was: what a report that comes back is judged
// against, and what its event is made of. Two reads by key.
import type { Database, Statement } from "better-sqlite3";
import type { RecipientState } from "../../model/recipient.ts";
import type { SentRecipient } from "../../model/report.ts";
import { shownState } from "./message-rows.ts";
import { messageForAttempt, queuedMessageOf } from "./queue.ts";
import type { ClaimedMessage } from "./queue.ts";

interface Row {
  key: number;
  rcptTo: string;
  canonical: string;
  to: string;
  domain: string;
  queueName: string;
  attempt: number;
  lastEventAt: number;
  state: RecipientState;
  receivingMta: string | null;
  sendingIp: string | null;
  provider: string | null;
}

export function createSentRows(db: Database) {
  const byKey: Statement<[number], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE key = ?`);
  const byId: Statement<[string], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE id = ?`);
  const recipientsOf: Statement<[{ key: number; now: number }], Row> = db.prepare(
    `SELECT key, rcpt_to AS rcptTo, canonical, to_address AS "to", domain, queue_name AS queueName, attempts AS attempt, last_event_at AS lastEventAt,
       ${shownState} AS state, receiving_mta AS receivingMta, sending_ip AS sendingIp, provider
     FROM recipients WHERE message_key = @key ORDER BY key`,
  );
  return (of: { key: number } | { id: string }, now: number): SentRecipient[] | null => {
    const row = "key" in of ? byKey.get(of.key) : byId.get(of.id);
    if (!row) return null;
    const message = queuedMessageOf(row);
    return recipientsOf
      .all({ key: message.key, now })
      .map(({ state, receivingMta, sendingIp, provider, ...recipient }) => ({
        job: { ...recipient, message },
        state,
        receivingMta,
        sendingIp,
        provider,
      }));
  };
}
