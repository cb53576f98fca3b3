// A write, the record of the answer that acknowledges it, and its row of the audit log, in one transaction, for every route
// alike. What the answer says depends on what the write finds, and the interface words it: so the write is a dry run first
// (run and rolled back), the interface makes the answer of its result, and the write runs again for good, with the answer,
// if its result is still the same. Where another write came between, it starts again. This is the writer's half; the
// loop's is with-idempotency.ts.
import type { Database } from "better-sqlite3";
import type { KeptAnswer } from "../../model/idempotency.ts";
import type { Endpoint } from "../../model/webhook.ts";
import type { Touch } from "../changes.ts";
import type { AnswerScope, Answers, Stored } from "./idempotency.ts";
import type { AuditWrites } from "./audit.ts";
import type { Tally } from "../batch-counters.ts";
import type { Sequences } from "./sequences.ts";

export interface IdempotentCall {
  /** null: the request has no key, and its answer is not kept. */
  scope: AnswerScope | null;
  /** null: the effect is not in this store, the answer stands alone. */
  write: { command: string; arg: unknown } | null;
  /** null: a dry run. `expected`: JSON of the write's result that the answer was made of. */
  answer: (KeptAnswer & { expected: string }) | null;
}

export type IdempotentOutcome =
  { kind: "dry_run"; result: unknown } | { kind: "kept" } | { kind: "changed" } | Stored;

/** Of a write that is none. */
export const noResult = "none";
/** What moves by itself while an endpoint is busy, and is out of date when it is read: were it compared, a write might never be kept. */
const moving: ReadonlySet<string> = new Set<keyof Endpoint>([
  "lastSuccessAt",
  "lastFailureAt",
  "consecutiveFailures",
  "failingSince",
]);
/** Results are plain values, the same on both sides of the thread. */
export const resultText = (result: unknown): string =>
  JSON.stringify(result, (name, value: unknown) => (moving.has(name) ? undefined : value)) ?? noResult;

/** `table`: every command that writes one thing, by name. */
export function createIdempotentWrite(
  db: Database,
  tally: Tally,
  { answers, audit, sequences }: { answers: Answers; audit: AuditWrites; sequences: Sequences },
  table: Record<string, (arg: never, blobs: readonly Buffer[]) => unknown>,
) {
  const begin = db.prepare("SAVEPOINT dry_run");
  const undo = db.prepare("ROLLBACK TO dry_run");
  const end = db.prepare("RELEASE dry_run");

  return {
    /** `blobs`: the request's fingerprint, empty without a key, and those of the write. */
    withIdempotency({ scope, write, answer }: IdempotentCall, blobs: readonly Buffer[]): IdempotentOutcome {
      const [fingerprint, ...own] = blobs;
      if (!fingerprint) throw new Error("withIdempotency needs a fingerprint");
      const stored = scope && answers.find(scope, fingerprint);
      if (stored) return stored;
      const before = tally.mark();
      const numbers = sequences.mark();
      begin.run();
      const result = write === null ? undefined : table[write.command]?.(write.arg as never, own);
      if (answer !== null && answer.expected === resultText(result)) {
        end.run();
        if (scope) answers.store(scope, fingerprint, answer, null);
        if (answer.audit) audit.record(answer.audit);
        return { kind: "kept" };
      }
      undo.run();
      end.run();
      tally.undo(before);
      sequences.undo(numbers); // else the result would be another each time
      return answer === null ? { kind: "dry_run", result } : { kind: "changed" };
    },
  };
}

/** Of a write that was kept with its answer: what it touches by itself. */
export function keptTouches(touches: Record<string, (touch: Touch, arg: never, result: never) => void>): {
  withIdempotency: (touch: Touch, arg: IdempotentCall, result: IdempotentOutcome) => void;
} {
  return {
    withIdempotency(touch, { write }, { kind }) {
      if (kind === "kept" && write) touches[write.command]?.(touch, write.arg as never, undefined as never);
    },
  };
}
