// The recipients of a message that went out, each with the job that it was: what a report that comes back is judged
// against, and what its event is made of. Two reads by key.
import type { Database, Statement } from "better-sqlite3";
import type { RecipientState } from "../../model/recipient.ts";
import type { QueuedMessage } from "../../model/queued-recipient.ts";
import type { SentRecipient } from "../../model/report.ts";
import type { ReactingRecipient } from "../../model/reaction.ts";
import { shownState } from "./message-rows.ts";
import { queuedMessageOf, type ClaimedMessage } from "../claimed.ts";
import { messageForAttempt } from "./queue.ts";

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

const recipientColumns = `key, rcpt_to AS rcptTo, canonical, to_address AS "to", domain, queue_name AS queueName, attempts AS attempt, last_event_at AS lastEventAt,
       ${shownState} AS state, receiving_mta AS receivingMta, sending_ip AS sendingIp, provider`;

function createMessageLookup(db: Database) {
  const byKey: Statement<[number], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE key = ?`);
  const byId: Statement<[string], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE id = ?`);
  return (of: { key: number } | { id: string }): QueuedMessage | null => {
    const row = "key" in of ? byKey.get(of.key) : byId.get(of.id);
    return row ? queuedMessageOf(row) : null;
  };
}

function sentRecipient(
  { state, receivingMta, sendingIp, provider, ...recipient }: Row,
  message: QueuedMessage,
): SentRecipient {
  return { job: { ...recipient, message }, state, receivingMta, sendingIp, provider };
}

export function createSentRows(db: Database) {
  const messageOf = createMessageLookup(db);
  const recipientsOf: Statement<[{ key: number; now: number }], Row> = db.prepare(
    `SELECT ${recipientColumns} FROM recipients WHERE message_key = @key ORDER BY key`,
  );
  return (of: { key: number } | { id: string }, now: number): SentRecipient[] | null => {
    const message = messageOf(of);
    if (!message) return null;
    return recipientsOf.all({ key: message.key, now }).map((row) => sentRecipient(row, message));
  };
}

type Reactions = Pick<ReactingRecipient, "openedAt" | "clickedAt" | "unsubscribedAt" | "machineVisits">;

/** One of them, with what it did before. */
export function createReactingRow(db: Database) {
  const messageOf = createMessageLookup(db);
  const recipient: Statement<[{ key: number; messageKey: number; now: number }], Row & Reactions> =
    db.prepare(
      `SELECT ${recipientColumns}, opened_at AS openedAt, clicked_at AS clickedAt, unsubscribed_at AS unsubscribedAt,
       machine_visits AS machineVisits FROM recipients WHERE key = @key AND message_key = @messageKey`,
    );
  return (of: { key: number } | { id: string }, key: number, now: number): ReactingRecipient | null => {
    const message = messageOf(of);
    const row = message && recipient.get({ key, messageKey: message.key, now });
    if (!row) return null;
    const { openedAt, clickedAt, unsubscribedAt, machineVisits, ...sent } = row;
    return { ...sentRecipient(sent, message), openedAt, clickedAt, unsubscribedAt, machineVisits };
  };
}
