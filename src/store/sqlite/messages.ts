// Messages: accepted (acceptance.ts), shown, listed and canceled.
import type { Database, Statement } from "better-sqlite3";
import type { NewMessage } from "../../model/acceptance.ts";
import type { Quota } from "../../model/limits.ts";
import type { MessageRecord } from "../../model/message.ts";
import type { Job } from "../../model/queued-recipient.ts";
import type { Tally } from "../batch-counters.ts";
import { kindOf, pageAt, pageOf } from "../cursor.ts";
import type { MessageStore } from "../interface/messages.ts";
import { jobsOf, packBatch, packMessage, type Inserted } from "../message-packing.ts";
import { createAcceptance } from "./acceptance.ts";
import type { ByteCache } from "../cache.ts";
import { isHeld } from "./held-mail.ts";
import { createMessageLists } from "./message-lists.ts";
import { createAttemptRows, createMessageRows } from "./message-rows.ts";
import { noun, type Writing } from "./noun.ts";
import { createQuotaView } from "./quotas.ts";

function createCancellation(db: Database, tally: Tally) {
  const messages = createMessageRows(db);
  const findMessage: Statement<[string, number], { key: number }> = db.prepare(
    "SELECT key FROM messages WHERE id = ? AND account_key = ?",
  );
  const cancel: Statement<[number, number], { bytes: number }> = db.prepare(
    `UPDATE recipients SET state = 'canceled', due_at = NULL, lease_owner = NULL, held_since = NULL, updated_at = ?
     WHERE message_key = ? AND (due_at IS NOT NULL OR ${isHeld}) RETURNING share_bytes AS bytes`,
  );

  return {
    cancelMessage(arg: {
      accountKey: number;
      id: string;
      at: number;
    }): { canceled: number; message: MessageRecord } | null {
      const row = findMessage.get(arg.id, arg.accountKey);
      if (!row) return null;
      const rows = cancel.all(arg.at, row.key);
      for (const { bytes } of rows) tally.change(arg.accountKey, -1, -bytes);
      const canceled = rows.length;
      const message = messages.record(arg.accountKey, arg.id, arg.at);
      return message && { canceled, message };
    },
  };
}

function createMessageLookups(db: Database) {
  const rows = createMessageRows(db);
  const passed = createQuotaView(db);
  const answer: Statement<
    [number, number, string, number],
    { fingerprint: Uint8Array; status: number; body: string }
  > = db.prepare(
    `SELECT fingerprint, status, body FROM idempotency WHERE account_key = ? AND test = ? AND request_key = ? AND created_at >= ?`,
  );
  return {
    message: rows.record,
    spentQuota: (quotas: Quota[], at: number) => passed(quotas, at, 1),
    answer: (accountKey: number, test: boolean, key: string, notBefore: number) =>
      answer.get(accountKey, test ? 1 : 0, key, notBefore) ?? null,
  };
}

/** The jobs of a message that is on disk; what their first attempts are about to read is kept at hand. */
function started(message: NewMessage, inserted: Inserted, kept: ByteCache): Job[] {
  const jobs = jobsOf(message, inserted);
  const [first] = jobs;
  if (first && message.content.kind === "inline")
    kept.keep(first.message.key, asBuffer(message.content.bytes));
  return jobs;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export const messages = noun({
  commands: (db: Database, { tally, sequences, answers }: Writing) => ({
    ...createAcceptance(db, tally, sequences, answers),
    ...createCancellation(db, tally),
  }),
  touches: {
    acceptMessage(touch, { accountKey, createdAt }, result) {
      if (result?.kind === "accepted") touch(accountKey, "messages", createdAt);
    },
    acceptMessages(touch, { messages: all }, result) {
      if (result?.kind !== "accepted") return;
      for (const { accountKey, createdAt } of all) touch(accountKey, "messages", createdAt);
    },
    cancelMessage: (touch, { accountKey, at }) => touch(accountKey, "messages", at),
  },
  lookups: createMessageLookups,
  lists: (db: Database) => ({ ...createMessageLists(db), attempts: createAttemptRows(db) }),
  calls: ({
    write,
    lookups,
    lists,
    clock,
    space,
    content,
  }): Omit<MessageStore, "putContent" | "dropContent" | "openContent" | "openContentForThread"> => ({
    spentQuota: async (quotas, at) => lookups.spentQuota(quotas, at),
    async acceptMessage(message) {
      const { packed, blobs } = packMessage(message, space.room());
      const accepted = await write.acceptMessage(packed, blobs);
      if (accepted.kind !== "accepted") return accepted;
      return { kind: "accepted", jobs: started(message, accepted, content) };
    },
    async acceptMessages(all, answer) {
      const { packed, blobs } = packBatch(all, answer, space.room());
      const result = await write.acceptMessages(packed, blobs);
      if (result.kind !== "accepted") return result;
      const jobs = all.map((message, index) => {
        const inserted = result.messages[index];
        return inserted ? started(message, inserted, content) : [];
      });
      return { kind: "accepted", jobs };
    },
    idempotent: async (accountKey, test, key, notBefore) => lookups.answer(accountKey, test, key, notBefore),
    message: async (accountKey, id) => lookups.message(accountKey, id, clock.now()),
    async listMessages(accountKey, filter, page) {
      const kind = kindOf("m", filter);
      const at = pageAt(kind, page, filter.to === undefined ? ["number", "number"] : ["number"]);
      return pageOf(kind, await lists.listMessages({ accountKey, filter, page: at, now: clock.now() }));
    },
    attempts: (accountKey, messageId) => lists.attempts({ accountKey, messageId }),
    cancelMessage: (accountKey, id, at) => write.cancelMessage({ accountKey, id, at }),
  }),
});
