// POST /v1/messages/batch: up to a hundred sends in one request. Each is validated as a single send is; the
// valid ones are accepted in one transaction together with the response, so that a repeated request finds all of it or
// none. If the commit refuses one (an address suppressed since), the others are committed without it.
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { BatchAnswer } from "../model/idempotency.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import { acceptAll, type Acceptable, type AcceptDeps } from "./accept.ts";
import type { Arrival, SendAnswer, Sender, Submission } from "./submission.ts";

export interface BatchDeps<Validated> extends AcceptDeps {
  store: AcceptDeps["store"] & Pick<Store, "dropContent">;
  clock: Clock;
  /** Throws Refusal. */
  validate(sender: Sender, request: unknown, arrival: Arrival): Promise<Validated>;
  /** Puts the content on disk. */
  keep(sender: Sender, valid: Validated): Promise<Acceptable>;
  /** The response that a single send would get. */
  answerOf(valid: Validated): SendAnswer;
}

type Item = { refusal: Refusal } | { answer: SendAnswer; mail: Acceptable };

export function createBatch<Validated>(deps: BatchDeps<Validated>): Submission["sendBatch"] {
  const read = async (sender: Sender, request: unknown, arrival: Arrival): Promise<Item> => {
    try {
      const valid = await deps.validate(sender, request, arrival);
      return { answer: deps.answerOf(valid), mail: await deps.keep(sender, valid) };
    } catch (error) {
      if (error instanceof Refusal) return { refusal: error };
      throw error;
    }
  };
  const drop = async (items: Item[]): Promise<void> => {
    const mails = items.flatMap((item) => ("mail" in item ? [item.mail] : []));
    await Promise.all(mails.map(({ content }) => deps.store.dropContent(content).catch(() => undefined)));
  };

  return async (sender, requests, arrival, idempotency) => {
    const items: Item[] = [];
    try {
      for (const request of requests) items.push(await read(sender, request, arrival));
      for (;;) {
        const body = JSON.stringify({ data: items.map(shown) });
        const answer: BatchAnswer | null = idempotency && {
          ...idempotency,
          accountKey: sender.account.key,
          test: sender.test,
          at: deps.clock.now(),
          status: 200,
          body,
        };
        const at = items.flatMap((item, index) => ("mail" in item ? [{ index, mail: item.mail }] : []));
        if (at.length === 0 && answer === null) return { status: 200, body, replayed: false };
        const accepted = await acceptAll(
          deps,
          at.map(({ mail }) => mail),
          answer,
        );
        if (accepted.kind === "accepted") return { status: 200, body, replayed: false };
        if (accepted.kind === "replayed") {
          await drop(items);
          return { status: accepted.status, body: accepted.body, replayed: true };
        }
        for (const [place, refusal] of accepted.refusals.entries()) {
          const index = at[place]?.index;
          if (!refusal || index === undefined) continue;
          // A full queue or disk, or an account that may not send, refuses the whole batch.
          if (refusal.status >= 500 || refusal.status === 403) throw refusal;
          await drop(items.slice(index, index + 1));
          items[index] = { refusal };
        }
      }
    } catch (error) {
      // After a failed sync the rows may be on disk after all: then the next start sweeps what none names.
      if (!(error instanceof StoreUnavailable) || error.why === "full") await drop(items);
      throw error;
    }
  };
}

/** One result of the batch response. */
function shown(item: Item): Record<string, unknown> {
  if ("answer" in item) return { ...item.answer, status: 202 };
  const { status, code, message, extras } = item.refusal;
  return { status, error: { code, message, ...extras } };
}
