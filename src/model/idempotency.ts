// Idempotent requests: the answer that is kept under an Idempotency-Key, in the transaction of its effect, and what a
// second request with the key is answered.
import type { AuditEntry } from "./audit.ts";

/** A key is replayed for so long, and removed after it. */
export const idempotencyKeptMs = 24 * 60 * 60_000;

/** The success of an idempotent request, stored with its effect. */
export interface IdempotencyRecord {
  key: string;
  /** SHA-256 over method, path and body bytes. */
  fingerprint: Uint8Array;
  status: number;
  body: string;
}

/** The answer to a request for several things at once, and whose key it stands under. */
export interface BatchAnswer extends IdempotencyRecord {
  accountKey: number;
  test: boolean;
  at: number;
}

/** A request whose answer is kept: whose key it is, and SHA-256 over method, path and body bytes. */
export interface AnswerRequest {
  accountKey: number;
  test: boolean;
  key: string;
  fingerprint: Uint8Array;
  at: number;
}

/** An answer that is kept, and what the audit log records with it. */
export interface KeptAnswer {
  status: number;
  body: string;
  audit: AuditEntry | null;
}

/** The key stands for an earlier request: the same one, which is answered as before, or another one. */
export type Replayed = { kind: "replayed"; status: number; body: string } | { kind: "idempotency_conflict" };

export type AnsweredResult<T> = { kind: "done"; result: T } | Replayed;
