// Answers to idempotent requests, kept for a day beside what they acknowledge. Rows stand in the order of time, which
// retention walks along: an answer that goes with a message has the message's key, any other takes the next number of the
// same sequence (sequences.ts), so that neither ever gets a number that was given before.
import type { Database, Statement } from "better-sqlite3";
import { idempotencyKeptMs } from "../../model/idempotency.ts";
import type { Sequences } from "./sequences.ts";

/** Whose key it is, and when. */
export interface AnswerScope {
  accountKey: number;
  test: number;
  key: string;
  at: number;
}

export type Stored = { kind: "replayed"; status: number; body: string } | { kind: "idempotency_conflict" };

interface Row {
  fingerprint: Buffer;
  status: number;
  body: string;
  created_at: number;
}

export function createAnswers(db: Database, sequences: Pick<Sequences, "next">) {
  const find: Statement<[number, number, string], Row> = db.prepare(
    "SELECT fingerprint, status, body, created_at FROM idempotency WHERE account_key = ? AND test = ? AND request_key = ?",
  );
  const store = db.prepare(
    "INSERT OR REPLACE INTO idempotency (message_key, account_key, test, request_key, fingerprint, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );

  return {
    /** What was answered under the key within its life; null: nothing, the request is the first. */
    find({ accountKey, test, key, at }: AnswerScope, fingerprint: Buffer): Stored | null {
      const row = find.get(accountKey, test, key);
      if (!row || row.created_at < at - idempotencyKeptMs) return null;
      if (!row.fingerprint.equals(fingerprint)) return { kind: "idempotency_conflict" };
      return { kind: "replayed", status: row.status, body: row.body };
    },
    store(
      scope: AnswerScope,
      fingerprint: Buffer,
      answer: { status: number; body: string },
      messageKey: number | null,
    ): void {
      const { accountKey, test, key, at } = scope;
      const number = messageKey ?? sequences.next("messages");
      store.run(number, accountKey, test, key, fingerprint, answer.status, answer.body, at);
    },
  };
}

export type Answers = ReturnType<typeof createAnswers>;
