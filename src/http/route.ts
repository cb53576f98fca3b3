// What a route is: data with a handler. The type requires a scope and a bucket, so that no endpoint can be added without
// saying who may call it and how often. app.ts binds the routes, middleware.ts judges a request before its handler runs,
// problem.ts renders refusals.
import type { Account } from "../model/account.ts";
import type { Scope } from "../model/api-key.ts";
import type { Resource } from "../model/last-change.ts";
import type { BodyKind } from "./large-body-thread.ts";
import type { Readable } from "node:stream";
import { z } from "zod";
import type { Principal } from "../access/access.ts";
import type { RouteBucket } from "../access/buckets.ts";
import type { ErrorCode, Problem } from "../errors.ts";
import type { Store } from "../store/store.ts";

/** The public HTTPS listeners, or the admin socket. */
export type ListenerKind = "public" | "admin";
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  /** Of a GET that shows one thing: when that was last written, where it changes at nothing else. The list's time counts otherwise. */
  lastModified?: number;
  /** JSON text unless the headers name another Content-Type. */
  body?: string | Buffer | Readable;
}

/** The schema of a JSON body, those of bodies of several media types, or null where there is no body. */
export type Answer = z.ZodType | Record<string, z.ZodType> | null;

/** A request that has passed the middleware, as its handler sees it. */
export interface Call<Query, Body> {
  listener: ListenerKind;
  account: Account;
  principal: Principal;
  query: Query;
  body: Body;
  /** A path parameter, percent-decoded once. */
  param(name: string): string;
  ip: string;
  /** True where the Accept header names this media type, and JSON with no higher weight. */
  prefers(mediaType: string): boolean;
  /**
   * The effect of a request that changes something, and its answer: with an Idempotency-Key they are kept together.
   * `effect` writes with the store that it is given, once; both may run more than once, so all else comes after.
   */
  idempotent<T>(effect: (store: Store) => Promise<T>, answer: (result: T) => Reply): Promise<Reply>;
  /** For what keeps its answer itself. */
  idempotency: { key: string; fingerprint: Buffer } | null;
  /** Wall clock at the request. */
  now: number;
  /** Calls back once when the client has gone or the answer is out. */
  onClose(listener: () => void): void;
}

/**
 * The resources that the answers of a GET are made of: the last write to any of them is its Last-Modified, which 304 is
 * judged by. None: the answer stays the same for as long as the program runs. `always`: it is new each time.
 */
export type LastModifiedFrom = readonly Resource[] | "always";

export type RouteOf<Query extends z.ZodObject, Body extends z.ZodType | null> = AnyRoute<Query, Body> &
  (
    | {
        method: "GET";
        lastModifiedFrom: LastModifiedFrom;
        /** Of what changes with the time too: how often. */ changesEachMs?: number;
      }
    | { method: Exclude<Method, "GET"> }
  );

interface AnyRoute<Query extends z.ZodObject, Body extends z.ZodType | null> {
  method: Method;
  /** `/v1/messages/{id}` */
  path: string;
  /** Another spelling of a path: it works the same. */
  alias?: boolean;
  /** What it does, in one line of the API's description. */
  summary: string;
  /** What it answers when it succeeds, by status. */
  answers: Record<number, Answer>;
  /** The codes that its handler refuses with, beside those of the middleware. */
  refuses?: readonly ErrorCode[];
  /** Its name in the audit log, where it is not that of its path (audit.ts); null: it changes nothing. */
  act?: string | null;
  /** It concerns the whole appliance, and not the account of the request. */
  applianceWide?: true;
  /** Members of the body whose values the audit log may keep: no secrets, no addresses of people. */
  auditFields?: readonly string[];
  /** Any one of these, admin always; the first is the `required_scope` of a refusal. `open`: no key is asked for. */
  scopes: readonly [Scope, ...Scope[]] | "open";
  bucket: RouteBucket;
  /** Tokens of the bucket `open` that a large answer costs; 1 where it is not given. */
  openTokens?: number;
  listeners: "public" | "admin" | "both";
  /** Of a route of the admin socket alone: it takes an Idempotency-Key, as all others that change something do. */
  takesKey?: true;
  query: Query;
  /** What the body has to be, where `body` lets everything through and the handler reads it itself. */
  requestSchema?: z.ZodType;
  /** null: a body is neither wanted nor read. */
  body: Body;
  /** A body with more values in it is refused unparsed; 20,000 where it is not given. */
  mostValues?: number;
  /** It sends the messages of its body, which a thread keeps if the body is large: the handler gets a LargeRequest in place of each message's JSON. */
  sends?: BodyKind;
  /** The body may be left out; the schema then sees `{}`. */
  bodyOptional?: boolean;
  /** The member of a created resource's body that its path ends in, where it is not `id`. */
  locatedBy?: string;
  /** How many things a sound body asks for: it costs a token of the bucket for each, and none is done where they do not all have one. */
  tokens?(body: Body extends z.ZodType ? z.output<Body> : undefined): number;
  /** Past this the caller is answered 504, milliseconds; 30 s where it is not given. */
  timeoutMs?: number;
  /** What fails unexpectedly in the handler is another component's fault: 502 in place of 500. */
  upstream?: boolean;
  /** Problems that the schema cannot see, listed beside its own; `json` is as it came. */
  problems?(json: Record<string, unknown>): Promise<Problem[]>;
  handle(call: Call<z.output<Query>, Body extends z.ZodType ? z.output<Body> : undefined>): Promise<Reply>;
}

export type Route = RouteOf<z.ZodObject, z.ZodType | null>;

/** Checks one route's types and forgets them. */
export function route<Query extends z.ZodObject, Body extends z.ZodType | null>(
  entry: RouteOf<Query, Body>,
): Route {
  return entry;
}

/** A JSON answer. */
export function json(status: number, value: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers, body: JSON.stringify(value) };
}

/** The answer to a request whose effect is over, and was not one write to the store. */
export function keepReply(idempotent: Call<unknown, unknown>["idempotent"], reply: Reply): Promise<Reply> {
  return idempotent(
    () => Promise.resolve(null),
    () => reply,
  );
}

/** What routes about the whole appliance have in common: they are on the operator's socket. */
export const operatorRoute = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  query: z.object({}),
  applianceWide: true,
} as const;
