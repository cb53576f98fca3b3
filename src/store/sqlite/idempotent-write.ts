// A write and the record of the answer that it is acknowledged with, and what the audit log is told of it, in one
// transaction, for every route alike. What the answer says depends on what the write finds, and is put into words by the door, not here: so the write is first
// rehearsed (run and taken back), the door makes the answer of its result, and then it is run again for good, with the
// answer, if its result is still the same. If another write got in between, it starts again. This is the writer's half; the loop's is answering.ts.
import type { Database } from "better-sqlite3";
import type { KeptAnswer } from "../../model/idempotency.ts";
import type { Endpoint } from "../../model/webhook.ts";
import type { Touch } from "../changes.ts";
import type { AnswerScope, Answers, Stored } from "./idempotency.ts";
import type { AuditWrites } from "./audit.ts";
import type { Tally } from "../batch-counters.ts";

export interface AnsweredCall {
  /** null: the request has no key, and its answer is not kept. */
  scope: AnswerScope | null;
  /** null: the effect is not in this store, the answer stands alone. */
  write: { command: string; arg: unknown } | null;
  /** null: a rehearsal. `expected`: JSON of the write's result that the answer was made of. */
  answer: (KeptAnswer & { expected: string }) | null;
}

export type AnsweredOutcome =
  { kind: "rehearsed"; result: unknown } | { kind: "kept" } | { kind: "changed" } | Stored;

/** Of a write that is none. */
export const noResult = "none";
/** What moves by itself while an endpoint is busy, and is out of date when it is read: were it compared, a write might never be kept. */
const moving: ReadonlySet<string> = new Set<keyof Endpoint>([
  "lastSuccessAt",
  "lastFailureAt",
  "consecutiveFailures",
]);
/** Results are plain values, the same on both sides of the thread. */
export const resultText = (result: unknown): string =>
  JSON.stringify(result, (name, value: unknown) => (moving.has(name) ? undefined : value)) ?? noResult;

/** `table`: every command that writes one thing, by name. */
export function createAnswered(
  db: Database,
  tally: Tally,
  { answers, audit }: { answers: Answers; audit: AuditWrites },
  table: Record<string, (arg: never, blobs: readonly Buffer[]) => unknown>,
) {
  const begin = db.prepare("SAVEPOINT rehearsal");
  const undo = db.prepare("ROLLBACK TO rehearsal");
  const end = db.prepare("RELEASE rehearsal");

  return {
    /** `blobs`: the request's fingerprint, empty without a key, and those of the write. */
    answered({ scope, write, answer }: AnsweredCall, blobs: readonly Buffer[]): AnsweredOutcome {
      const [fingerprint, ...own] = blobs;
      if (!fingerprint) throw new Error("answered needs a fingerprint");
      const stored = scope && answers.find(scope, fingerprint);
      if (stored) return stored;
      const before = tally.mark();
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
      return answer === null ? { kind: "rehearsed", result } : { kind: "changed" };
    },
  };
}

/** Of a write that was kept with its answer: what it touches by itself. */
export function keptTouches(touches: Record<string, (touch: Touch, arg: never, result: never) => void>): {
  answered: (touch: Touch, arg: AnsweredCall, result: AnsweredOutcome) => void;
} {
  return {
    answered(touch, { write }, { kind }) {
      if (kind === "kept" && write) touches[write.command]?.(touch, write.arg as never, undefined as never);
    },
  };
}
