// One request at a time for an Idempotency-Key. A second one that arrives while the first runs waits for
// it and then finds what it stored; where the first failed nothing is stored, and the second runs itself.
// The record of a success is written in one transaction with its effect: by submission for what is sent, for all else
// by `keepAnswer`, which every handler reaches as `call.idempotent`. A refusal is thrown, so nothing of it is kept.
import { Refusal } from "../errors.ts";
import type { AuditEntry } from "../model/audit.ts";
import type { AnswerRequest } from "../model/idempotency.ts";
import type { Store } from "../store/store.ts";
import type { Reply, Route } from "./route.ts";

export interface InFlight {
  /** The call that releases `id`: at once, or when no other request holds it. */
  enter(id: string): (() => void) | Promise<() => void>;
}

export function createInFlight(): InFlight {
  /** Callbacks of those who wait until an id is released. */
  const held = new Map<string, (() => void)[]>();
  const hold = (id: string): (() => void) => {
    const waiting: (() => void)[] = [];
    held.set(id, waiting);
    return () => {
      held.delete(id);
      for (const wake of waiting) wake();
    };
  };
  const holdNext = async (id: string): Promise<() => void> => {
    for (let waiting = held.get(id); waiting; waiting = held.get(id)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      await promise;
    }
    return hold(id);
  };
  return { enter: (id) => (held.has(id) ? holdNext(id) : hold(id)) };
}

/** Every route of the API that changes something, and those of the operator's that say so. */
export function takesKey(route: Pick<Route, "method" | "listeners" | "takesKey">): boolean {
  return route.method !== "GET" && (route.listeners !== "admin" || route.takesKey === true);
}

/** Runs the effect and answers; if the request has a key or belongs in the audit log, all is written together. */
export async function keepAnswer<T>(
  store: Store,
  request: AnswerRequest | null,
  act: ((reply: Reply) => AuditEntry) | null,
  effect: (store: Store) => Promise<T>,
  answer: (result: T) => Reply,
): Promise<Reply> {
  if (!request && !act) return answer(await effect(store));
  let reply: Reply = { status: 500 };
  const kept = await store.withIdempotency(request, effect, (result) => {
    reply = answer(result);
    const { status, body = "" } = reply;
    if (typeof body !== "string") throw new Error("an answer that is kept is text");
    return { status, body, audit: act?.(reply) ?? null };
  });
  if (kept.kind === "done") return reply;
  if (kept.kind === "idempotency_conflict") throw reused();
  return replay(kept);
}

/** A stored answer as it is given again. */
export function replay({ status, body }: { status: number; body: string }): Reply {
  return { status, headers: { "idempotency-replayed": "true" }, ...(body === "" ? {} : { body }) };
}

function reused(): Refusal {
  return new Refusal("duplicate_idempotency_key", "This Idempotency-Key was used with a different request.");
}

/** The request's key, null without one. Throws invalid_request for one that is not 1–255 printable ASCII characters. */
export function readIdempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  const key = Array.isArray(header) ? header.join(", ") : header;
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new Refusal("invalid_request", "An Idempotency-Key is 1 to 255 printable ASCII characters.", {
      field: "Idempotency-Key",
    });
  }
  return key;
}

/** Throws duplicate_idempotency_key where the key was used with another request. */
export function checkFingerprint(stored: Uint8Array, own: Uint8Array): void {
  if (Buffer.compare(stored, own) !== 0) throw reused();
}
