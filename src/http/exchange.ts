// One request on its way through the middleware, which fills in what it finds, to its handler.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../access/access.ts";
import type { BucketState } from "../access/buckets.ts";
import type { Account } from "../model/account.ts";
import type { ConnectionSlot } from "./connections.ts";
import type { LargeBody } from "./large-bodies.ts";
import type { ListenerKind, Route } from "./route.ts";

/** What the path of a request came to. */
export type Match =
  | { kind: "route"; route: Route }
  | { kind: "method"; allow: string[] }
  | { kind: "none" }
  | { kind: "malformed" }
  /** In a form that is not taken: another scheme, a backslash, a fragment. */
  | { kind: "target" };

/** One request, and what is known of it. */
export interface Exchange {
  readonly listener: ListenerKind;
  readonly id: string; // req_…
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly path: string;
  readonly search: URLSearchParams;
  readonly params: Record<string, string>;
  readonly match: Match;
  readonly ip: string;
  principal: Principal | null;
  /** Of a request that came through a proxy: what it counts as. */
  slot: ConnectionSlot | null;
  bucket: BucketState | null;
  query: Record<string, unknown>;
  raw: Buffer | null;
  /** A body that was too large for the loop, in place of `raw`. */
  large: LargeBody | null;
  json: unknown;
  body: unknown;
  idempotency: { key: string; fingerprint: Buffer } | null;
  /** Its audit log entry is written in the transaction of the effect. */
  audited: boolean;
  /** Run once the work is really over, even where the client was answered before. */
  cleanup: (() => void)[];
}

export function routeOf(x: Exchange): Route | null {
  return x.match.kind === "route" ? x.match.route : null;
}

/** The key's account, or the operator's choice. Set by `authenticate` wherever a handler runs. */
export function accountOf(x: Exchange): Account {
  if (!x.principal) throw new Error("the request has no principal");
  return x.principal.account;
}

/** A header's value; of one that is repeated all of them, joined. */
export function headerOf(x: Exchange, name: string): string | undefined {
  const value = x.req.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Its route accepts mail, and refuses a paused account. */
export function sendsMail(x: Exchange): boolean {
  return routeOf(x)?.refuses?.includes("account_paused") === true;
}
