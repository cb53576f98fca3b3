// The loop's side of a write that is kept with its answer (idempotent-write.ts): the effect runs over a view of the store whose
// one write is a dry run, the answer is made of what came of it, and both are handed over to be kept.
import type { AnsweredResult, AnswerRequest, KeptAnswer } from "../../model/idempotency.ts";
import { noResult, resultText } from "./idempotent-write.ts";
import type { IdempotentCall, IdempotentOutcome } from "./idempotent-write.ts";
import type { AnswerScope, Stored } from "./idempotency.ts";
import type { Call } from "./engine/group-commit.ts";
import { withStorableText } from "../storable-text.ts";
import type { Store } from "../store.ts";
import { remote, type Remote } from "./remote.ts";
import type { Commands } from "./nouns.ts";

/** `viewOf`: the store as `effect` sees it, its writes going to that writer, its clearing up to `after`. */
export async function withIdempotency<T>(
  call: Call,
  viewOf: (view: {
    write: Remote<Commands>;
    call: Call;
    after: (work: () => Promise<void>) => Promise<void>;
  }) => Store,
  request: AnswerRequest | null,
  effect: (store: Store) => Promise<T>,
  answer: (result: T) => KeptAnswer,
): Promise<AnsweredResult<T>> {
  const scope = request && scopeOf(request);
  const fingerprint = request?.fingerprint ?? new Uint8Array(0);

  for (;;) {
    let write: IdempotentCall["write"] = null;
    let blobs: readonly Uint8Array[] = [];
    const ask = async (reply: IdempotentCall["answer"]) => {
      const asked: IdempotentCall = { scope, write, answer: reply };
      return (await call("withIdempotency", asked, [fingerprint, ...blobs])) as IdempotentOutcome;
    };
    let expected = noResult;
    let stored: Stored | null = null;
    const later: (() => Promise<void>)[] = [];
    const dryRun: Call = async (command, arg, own = []) => {
      if (write !== null) throw new Error(`${command}: an effect with an Idempotency-Key writes once`);
      write = { command, arg };
      blobs = own;
      const tried = await ask(null);
      if (tried.kind === "dry_run") {
        expected = resultText(tried.result);
        return tried.result;
      }
      if (tried.kind !== "replayed" && tried.kind !== "idempotency_conflict")
        throw new Error("a dry run that was kept");
      stored = tried;
      throw new AnsweredBefore();
    };
    const view = viewOf({
      write: remote<Commands>(dryRun),
      call: dryRun,
      after: async (work) => void later.push(work),
    });
    try {
      const result = await effect(view);
      const reply = withStorableText(answer(result));
      const outcome = await ask({ ...reply, expected });
      if (outcome.kind === "changed" || outcome.kind === "dry_run") continue;
      if (outcome.kind !== "kept") return outcome;
      for (const work of later) await work();
      return { kind: "done", result };
    } catch (error) {
      if (error instanceof AnsweredBefore && stored !== null) return stored;
      throw error;
    }
  }
}

function scopeOf({ accountKey, test, key, at }: AnswerRequest): AnswerScope {
  return { accountKey, test: test ? 1 : 0, key, at };
}

/** Leads out of an effect whose key was answered meanwhile. */
class AnsweredBefore extends Error {}
