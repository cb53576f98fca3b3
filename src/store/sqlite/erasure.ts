// One person out of what an account keeps: the address's recipient rows with their attempts, events with deliveries,
// inbox copies, and the messages to this address alone. A message to others too stays for them; its content, which
// may show the address, is deleted when no recipient waits for it any more. What is being sent right now is left for another
// call. The suppression list stays, counters have no addresses, and answers to idempotent requests go within a day anyway.
// Each call is a small piece, found by the index of addresses; files are the caller's to unlink, after the commit.
import type { Database, Statement } from "better-sqlite3";
import type { ContentRef } from "../../model/content.ts";
import type { Forgotten } from "../../model/erasure.ts";
import { isHeld, isLeased } from "./held-mail.ts";
import type { Tally } from "../batch-counters.ts";
import { removed } from "../changes.ts";
import type { ErasureStore } from "../interface/erasure.ts";
import { unlinkAll } from "./content.ts";
import { none, noun, type Writing } from "./noun.ts";

/** Messages that one piece is about, content and all. */
const pieceSize = 50;

export interface ForgetPiece {
  accountKey: number;
  canonical: string;
  /** Messages after this one. */
  afterKey: number;
}

/** `next`: where the next piece begins; null: that was the last. */
export interface ForgottenPiece extends Forgotten {
  files: string[];
  next: number | null;
}

interface Row {
  key: number;
  messageKey: number;
  to: string;
  leased: number;
  unsent: number;
  bytes: number;
}

interface MessageRow {
  id: string;
  contentKind: ContentRef["kind"] | null;
  contentName: string | null;
  recipients: number;
  unsent: number;
}

export function createForget(db: Database, tally: Tally) {
  const rowsOf: Statement<[ForgetPiece & { limit: number }], Row> = db.prepare(
    `SELECT key, message_key AS messageKey, to_address AS "to", coalesce(${isLeased}, 0) AS leased,
       (due_at IS NOT NULL OR coalesce(${isHeld}, 0)) AS unsent, share_bytes AS bytes
     FROM recipients INDEXED BY recipients_address
     WHERE account_key = @accountKey AND canonical = @canonical AND message_key > @afterKey ORDER BY message_key LIMIT @limit`,
  );
  const attempts = db.prepare("DELETE FROM attempts WHERE message_key = ? AND recipient_key = ?");
  const inbox = db.prepare("DELETE FROM inbox WHERE message_key = ? AND to_address = ?");
  const recipient = db.prepare("DELETE FROM recipients WHERE key = ?");
  const messageOf: Statement<[number], MessageRow> = db.prepare(
    `SELECT m.id, m.content_kind AS contentKind, m.content_name AS contentName, count(r.key) AS recipients,
       total(r.due_at IS NOT NULL OR r.lease_owner IS NOT NULL) AS unsent
     FROM messages m LEFT JOIN recipients r ON r.message_key = m.key WHERE m.key = ? GROUP BY m.key`,
  );
  const content = [
    "DELETE FROM content WHERE message_key = ?",
    "DELETE FROM inbox WHERE message_key = ?",
    "UPDATE attempts SET trace = NULL WHERE message_key = ? AND trace IS NOT NULL",
    "UPDATE messages SET content_kind = NULL, content_name = NULL WHERE key = ?",
  ].map((sql): Statement<[number]> => db.prepare(sql));
  const message = db.prepare("DELETE FROM messages WHERE key = ?");
  const nxdomainRecheck = db.prepare("DELETE FROM nxdomain_rechecks WHERE account_key = ? AND canonical = ?");
  const events = createEventRemoval(db);

  const forgetRow = (
    { key, messageKey, to, unsent, bytes }: Row,
    piece: ForgetPiece,
    sum: ForgottenPiece,
  ): void => {
    sum.events += events.ofMessage(piece.accountKey, messageKey, piece.canonical);
    attempts.run(messageKey, key);
    sum.inbox += inbox.run(messageKey, to).changes;
    recipient.run(key);
    sum.recipients += 1;
    sum.canceled += unsent;
    if (unsent !== 0) tally.change(piece.accountKey, -1, -bytes);
  };
  const forgetMessage = (key: number, sum: ForgottenPiece): void => {
    const left = messageOf.get(key);
    if (!left) return;
    const alone = left.recipients === 0;
    if (left.contentKind !== null && !alone && left.unsent > 0) return void sum.contentKept.push(left.id);
    if (left.contentKind !== null) {
      for (const statement of content) statement.run(key);
      if (left.contentName !== null) sum.files.push(left.contentName);
      sum.content += 1;
    }
    if (!alone) return;
    message.run(key);
    sum.messages += 1;
  };

  return {
    forgetRecipient(piece: ForgetPiece): ForgottenPiece {
      const sum: ForgottenPiece = { ...nothingForgotten(), files: [], next: null };
      const rows = rowsOf.all({ ...piece, limit: pieceSize });
      for (const row of rows) {
        if (row.leased !== 0) sum.underWay += 1;
        else {
          forgetRow(row, piece, sum);
          forgetMessage(row.messageKey, sum);
        }
      }
      nxdomainRecheck.run(piece.accountKey, piece.canonical);
      const others = events.ofNoMessage(piece.accountKey, piece.canonical, pieceSize);
      sum.events += others;
      if (rows.length === pieceSize || others === pieceSize)
        sum.next = rows.at(-1)?.messageKey ?? piece.afterKey;
      return sum;
    },
  };
}

export function nothingForgotten(): Forgotten {
  return {
    recipients: 0,
    canceled: 0,
    messages: 0,
    content: 0,
    events: 0,
    inbox: 0,
    underWay: 0,
    contentKept: [],
  };
}

/** Events of one address, and what of them was or is still to be delivered to webhooks. */
function createEventRemoval(db: Database) {
  const ofMessage: Statement<[number, string], { seq: number }> = db.prepare(
    "SELECT seq FROM events WHERE message_key = ? AND recipient = ?",
  );
  const ofNoMessage: Statement<[number, string, number], { seq: number }> = db.prepare(
    `SELECT seq FROM events INDEXED BY events_address
     WHERE message_key IS NULL AND account_key = ? AND recipient = ? LIMIT ?`,
  );
  const endpointsOf: Statement<[number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE account_key = ?",
  );
  // An attempt has the receiver's answer to the event, so it is deleted with it.
  const deliveries = ["deliveries", "delivery_attempts"].map((table): Statement<[number, number]> =>
    db.prepare(`DELETE FROM ${table} WHERE endpoint_key = ? AND event_seq = ?`),
  );
  const event = db.prepare("DELETE FROM events WHERE seq = ?");
  const remove = (accountKey: number, rows: { seq: number }[]): number => {
    for (const { seq } of rows) {
      for (const { key } of endpointsOf.all(accountKey))
        for (const statement of deliveries) statement.run(key, seq);
      event.run(seq);
    }
    return rows.length;
  };
  return {
    ofMessage: (accountKey: number, messageKey: number, recipient: string): number =>
      remove(accountKey, ofMessage.all(messageKey, recipient)),
    ofNoMessage(accountKey: number, recipient: string, limit: number): number {
      return remove(accountKey, ofNoMessage.all(accountKey, recipient, limit));
    },
  };
}

export const erasure = noun({
  commands: (db: Database, { tally }: Writing) => createForget(db, tally),
  touches: {
    forgetRecipient(touch, { accountKey }) {
      touch(accountKey, "messages"); // one that stays shows a recipient less, and no later time
      touch(accountKey, "events", removed);
      touch(accountKey, "inbox", removed);
    },
  },
  lookups: none,
  lists: none,
  calls: ({ write, content, spool }): ErasureStore => ({
    async forgetRecipient(accountKey, canonical, afterKey) {
      const { files, ...forgotten } = await write.forgetRecipient({ accountKey, canonical, afterKey });
      if (forgotten.content > 0) content.clear();
      await unlinkAll(spool, files);
      return forgotten;
    },
  }),
});
