// A running HTTP server on loopback without TLS, every answer of which is held against the API's description, a small store in memory where none is given, and fakes of
// the modules below that a test replaces by what it needs. Requests go through node:http, so that a test
// says every header itself.
import { createActivity } from "../../src/activity/activity.ts";
import { mkdtempSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAccess, type Access } from "../../src/access/access.ts";
import { createMaintenance } from "../../src/maintenance/maintenance.ts";
import type { Clock } from "../../src/clock.ts";
import type { Config } from "../../src/config.ts";
import type { Domains } from "../../src/domains/domains.ts";
import type { HttpDeps } from "../../src/http/deps.ts";
import { createDocument } from "../../src/http/openapi/document.ts";
import type { ListenerKind } from "../../src/http/route.ts";
import { allRoutes } from "../../src/http/routes.ts";
import { pageOf } from "../../src/http/paging.ts";
import { createHttp, type Http } from "../../src/http/server.ts";
import { createStreams } from "../../src/http/streams.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createQueuePauses } from "../../src/queue/queue-pauses.ts";
import { createQueueAdmin } from "../../src/queue/queue-admin.ts";
import { createIdMint } from "../../src/ids.ts";
import { noLines, silentLog, type Log } from "../../src/log.ts";
import type { Account } from "../../src/model/account.ts";
import type { ApiKey, Scope } from "../../src/model/api-key.ts";
import type { Store } from "../../src/store/store.ts";
import type { Acceptance, SendAnswer, Submission } from "../../src/submission/submission.ts";
import type { ShapingRules } from "../../src/queue/shaping-rules.ts";
import type { Pools } from "../../src/pools/pools.ts";
import { createParsing } from "../../src/parsing/parsing.ts";
import type { Webhooks } from "../../src/webhooks/webhooks.ts";
import { newAccount } from "../support/account.ts";
import { ManualClock } from "../support/clock.ts";
import { createConformance, type Conformance } from "../support/conformance.ts";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  json: Json;
}
/** Any JSON value; what a member really is, its assertion says. */
export interface Json {
  [name: string]: Json;
}

/** The member as a string; fails where it is none. */
export function text(value: unknown): string {
  if (typeof value !== "string") throw new Error(`${JSON.stringify(value)} is no string`);
  return value;
}

export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

export interface Ask {
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: unknown;
  key?: string | null;
  /** Over the operator's socket. */
  admin?: boolean;
  raw?: string | Buffer;
}

export interface Harness {
  http: Http;
  access: Access;
  clock: ManualClock;
  account: Account;
  socket: string;
  port: number;
  logged: { level: string; fields: Record<string, unknown>; text: string }[];
  key(
    scope: Scope,
    more?: { test?: boolean; allowIps?: string[]; expiresAt?: number },
  ): Promise<{ key: ApiKey; value: string }>;
  ask(ask: Ask): Promise<Answer>;
  stop(): Promise<void>;
}

const none = { rows: 0, more: false };

/** Methods that a test does not give throw when they are called. */
export function fake<T extends object>(name: string, methods: Partial<T>): T {
  return new Proxy(methods as T, {
    get: (target, property) =>
      property in target
        ? Reflect.get(target, property)
        : () => {
            throw new Error(`${name}.${String(property)} is not faked`);
          },
  });
}

export async function startHttp(
  options: {
    store?: Partial<Store>;
    /** A real store, which is closed with the server. */
    opened?: { store: Store; clock: ManualClock };
    submission?: Partial<Submission>;
    webhooks?: Partial<Webhooks>;
    pools?: Partial<Pools>;
    dnsbl?: Partial<HttpDeps["dnsbl"]>;
    shapingRules?: Partial<ShapingRules>;
    queue?: HttpDeps["queue"];
    probe?: HttpDeps["probe"];
    domains?: Partial<Domains>;
    guard?: HttpDeps["guard"];
    backups?: Partial<HttpDeps["backups"]>;
    storeChecks?: Partial<HttpDeps["storeChecks"]>;
    retention?: Partial<HttpDeps["retention"]>;
    config?: Partial<Pick<Config, "http" | "publicUrl">> & { rates?: Config["limits"]["rates"] };
    status?: () => Promise<object>;
    doctor?: HttpDeps["doctor"];
    metrics?: HttpDeps["metrics"];
    activity?: HttpDeps["activity"];
    reload?: HttpDeps["reload"];
    logLines?: HttpDeps["logLines"];
    certificates?: HttpDeps["certificates"];
    trackingCertificates?: HttpDeps["trackingCertificates"];
    tls?: Partial<HttpDeps["tls"]>;
    tracking?: Partial<HttpDeps["tracking"]>;
  } = {},
): Promise<Harness> {
  const clock = options.opened?.clock ?? new ManualClock();
  const logged: Harness["logged"] = [];
  const log = recording(logged);
  const mint = createIdMint();
  const made = newAccount({ id: mint("acct", clock.now()), createdAt: clock.now() });
  const account = (await options.opened?.store.accountByName("default")) ?? made;
  const store: Store =
    options.opened?.store ??
    fake<Store>("store", {
      ...memoryKeys(account),
      isTrackingName: async () => false,
      async withIdempotency(_request, effect, answer) {
        const result = await effect(store);
        answer(result);
        return { kind: "done", result };
      },
      ...options.store,
    });
  const socket = join(mkdtempSync(join(tmpdir(), "svc-http-")), "admin.sock");
  const access = createAccess({ store, clock, log, mint });
  const dnsbl: Config["dnsbl"] = { intervalMs: 3_600_000, zones: [], onListing: "none" };
  const config = {
    publicUrl: options.config?.publicUrl ?? "https://mail.acme.example",
    socket,
    hostname: "mail.acme.example",
    metrics: { listen: [] as Config["metrics"]["listen"] },
    relay: { starttls: [], implicitTls: [{ host: "127.0.0.1", port: 465 }] },
    inbound: { listen: [] },
    http: options.config?.http ?? { listen: [{ host: "127.0.0.1", port: 0 }], trustedProxies: [] },
    dnsbl,
    outbound: { maxAgeMs: 172_800_000 },
    limits: { maxQueue: 0, minFreeSpaceShare: 0, rates: options.config?.rates ?? {} },
  };
  const parsing = createParsing({ clock, log });
  const deps: HttpDeps = {
    config: config as unknown as Config,
    certificates: options.certificates ?? null,
    trackingCertificates: options.trackingCertificates ?? null,
    tls: fake<HttpDeps["tls"]>("tls", { list: () => Promise.resolve([]), ...options.tls }),
    store,
    access,
    submission: fake<Submission>("submission", options.submission ?? {}),
    domains: fake<Domains>("domains", options.domains ?? {}),
    webhooks: fake<Webhooks>("webhooks", options.webhooks ?? {}),
    pools: fake<Pools>("pools", {
      changed: () => Promise.resolve(),
      warmupOf: () => null,
      ...options.pools,
    }),
    dnsbl: fake<HttpDeps["dnsbl"]>("dnsbl", {
      listings: () => [],
      zones: () => [],
      zonesChanged: () => Promise.resolve(),
      ...options.dnsbl,
    }),
    maintenance: createMaintenance({ store, clock }),
    storeChecks: fake<HttpDeps["storeChecks"]>("storeChecks", {
      running: () => null,
      last: () => null,
      ...options.storeChecks,
    }),
    retention: fake<HttpDeps["retention"]>("retention", {
      running: () => null,
      last: () => null,
      expired: () => Promise.resolve({ content: none, messages: none, events: none, audit: none }),
      ...options.retention,
    }),
    backups: fake<HttpDeps["backups"]>("backups", {
      running: () => null,
      last: () => null,
      list: () => Promise.resolve([]),
      ...options.backups,
    }),
    queuePauses: createQueuePauses({ store, clock }),
    queueAdmin: createQueueAdmin({
      store,
      recorder: createRecorder({ clock, mint }),
      note: () => undefined,
      clock,
    }),
    shapingRules: fake<ShapingRules>("shapingRules", options.shapingRules ?? {}),
    queue: options.queue ?? fake<HttpDeps["queue"]>("queue", {}),
    probe: options.probe ?? fake<HttpDeps>("deps", {}).probe,
    parsing,
    doctor: options.doctor ?? fake<HttpDeps["doctor"]>("doctor", {}),
    tracking: {
      tokens: { read: () => null },
      visits: fake<HttpDeps["tracking"]["visits"]>("visits", {}),
      unsubscribes: fake<HttpDeps["tracking"]["unsubscribes"]>("unsubscribes", {}),
      ...options.tracking,
    },
    metrics: options.metrics ?? (() => Promise.resolve("")),
    activity: options.activity ?? {
      now: () =>
        createActivity({
          store,
          clock,
          startedAt: clock.now(),
          egress: () => ({ running: [], slowed: [] }),
          queue: () => ({ active: 0, unwritten: 0 }),
          connections: () => 0,
        }).now(),
    },
    reload: options.reload ?? (() => Promise.resolve({ failed: [], restartFor: [] })),
    guard: options.guard ?? { resume: () => Promise.resolve(false) },
    clock: clock satisfies Clock,
    log,
    logLines: options.logLines ?? noLines,
    mint,
    status: options.status ?? (() => Promise.resolve({ ready: true })),
  };
  const http = createHttp(deps);
  await http.start();
  const port = Number(/:(\d+)$/.exec(http.addresses()[0]?.address ?? "")?.[1]);
  const wanted = { name: "admin", scope: "admin" as const, test: false, allowIps: [], expiresAt: null };
  const adminKey = (await access.createKey(account.key, wanted)).value;
  const harness: Harness = {
    http,
    access,
    clock,
    account,
    socket,
    port,
    logged,
    key: (scope, more = {}) =>
      access.createKey(account.key, {
        name: scope,
        scope,
        test: more.test ?? false,
        allowIps: more.allowIps ?? [],
        expiresAt: more.expiresAt ?? null,
      }),
    async ask(ask) {
      const key = ask.key === undefined ? adminKey : ask.key;
      const answer = await send(ask, { key: ask.admin === true ? null : key, port, socket });
      conforms(ask, answer, deps);
      return answer;
    },
    async stop() {
      await http.stop();
      await parsing.stop();
      await options.opened?.store.close();
    },
  };
  return harness;
}

/** What an accepted send is answered, the nth of a test. */
export function acceptance(n = 1): Acceptance & { id: string } {
  const id = `msg_${String(n).padStart(26, "0")}`;
  const answer: SendAnswer = {
    id,
    status: "queued",
    created_at: "2026-11-27T09:15:22.123Z",
    send_at: null,
    recipients: [{ email: "ann@a.test", type: "to" }],
    message_id_header: "<1@mail.acme.example>",
  };
  return { status: 202, body: JSON.stringify(answer), id, replayed: false };
}

const described = new Map<ListenerKind, Conformance>();

/** Throws where an answer departs from what the description of its listener says. */
function conforms(ask: Ask, answer: Answer, deps: HttpDeps): void {
  const listener = ask.admin === true ? "admin" : "public";
  const conformance =
    described.get(listener) ??
    createConformance(
      createDocument(allRoutes({ ...deps, streams: createStreams() }), {
        listener,
        publicUrl: "",
      }),
    );
  described.set(listener, conformance);
  const { method = "GET", path = "/" } = ask;
  const faults = conformance.faultsOf({ ...answer, method, path });
  if (faults.length > 0)
    throw new Error(`${method} ${path} departs from the description: ${faults.join("; ").slice(0, 1500)}`);
}

/** One request; its answer is never thrown. */
export function send(ask: Ask, to: { key: string | null; port: number; socket: string }): Promise<Answer> {
  const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
  const headers: Record<string, string | string[]> = {
    ...(to.key === null ? {} : { authorization: `Bearer ${to.key}` }),
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...ask.headers,
  };
  for (const [name, value] of Object.entries(headers)) if (value === "-") delete headers[name];
  const where = ask.admin === true ? { socketPath: to.socket } : { host: "127.0.0.1", port: to.port };
  return new Promise((resolve, reject) => {
    const req = httpRequest(
      { ...where, method: ask.method ?? "GET", path: ask.path ?? "/", headers, agent: false },
      (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("error", reject);
        res.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson =
            /json/.test(res.headers["content-type"] ?? "") &&
            text !== "" &&
            !/ndjson/.test(res.headers["content-type"] ?? "");
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            text,
            json: (isJson ? JSON.parse(text) : {}) as Json,
          });
        });
      },
    );
    req.on("error", reject);
    req.end(body);
  });
}

function recording(logged: Harness["logged"]): Log {
  const at = (level: string) => (fields: Record<string, unknown>, text: string) =>
    void logged.push({ level, fields, text });
  const log: Log = {
    ...silentLog,
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    component: () => log,
  };
  return log;
}

/** The part of a store that authentication needs. */
function memoryKeys(account: Account): Partial<Store> {
  const keys: (ApiKey & { hash: Uint8Array })[] = [];
  return {
    secret: () => Promise.resolve(Buffer.alloc(32, 7)),
    accountByName: (name) => Promise.resolve(name === account.name ? account : null),
    accountByKey: (key) => Promise.resolve(key === account.key ? account : null),
    createApiKey(wanted) {
      const key = { ...wanted, key: keys.length + 1, lastUsedAt: null, revokedAt: null };
      keys.push(key);
      return Promise.resolve(key);
    },
    apiKeyByHash: (hash) => Promise.resolve(keys.find((key) => Buffer.compare(key.hash, hash) === 0) ?? null),
    listApiKeys: (_account, page) => Promise.resolve(pageOf(keys, page)),
    apiKey: (_account, id) => Promise.resolve(keys.find((key) => key.id === id) ?? null),
    setApiKeyStatus(_account, id, status, at) {
      const key = keys.find((other) => other.id === id);
      if (!key) return Promise.resolve(null);
      if (key.status !== "revoked")
        Object.assign(key, { status, revokedAt: status === "revoked" ? at : null });
      return Promise.resolve(key);
    },
    noteUse: () => Promise.resolve(),
    lastChange: () => Promise.resolve({ at: 0, late: 0 }),
    recordAudit: () => Promise.resolve(),
  };
}
