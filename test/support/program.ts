// The whole program in the test's own process: every module as the daemon wires them, a store on disk, a made-up DNS, and
// the HTTP server on loopback behind a trusted proxy, so that a test says where its requests come from. Nothing leaves the
// machine. Fast enough for thousands of requests; nothing of it is faked but the network.
import { mkdtempSync, readFileSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rateTable } from "../../src/access/buckets.ts";
import type { Clock } from "../../src/clock.ts";
import { faultText, loadConfig } from "../../src/config.ts";
import { serve } from "../../src/daemon.ts";
import type { RouteDeps } from "../../src/http/deps.ts";
import type { Route } from "../../src/http/route.ts";
import { allRoutes } from "../../src/http/routes.ts";
import { silentLog, type Log } from "../../src/log.ts";
import { startDnsServer, type DnsServer } from "./dns-server.ts";
import { publish } from "./publish.ts";
import { removeFolder } from "./folders.ts";

export interface ProgramRequest {
  method: string;
  /** As it stands in the request line. */
  target: string;
  headers?: Record<string, string>;
  body?: Buffer | string;
  listener?: "public" | "admin";
}

export interface ProgramResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface Program {
  dns: DnsServer;
  port: number;
  /** Where the program keeps everything. */
  dataDir: string;
  /** Of the mail listeners: `smtp` and `smtps` of the relay, `inbound`. */
  mailPorts(name: string): number[];
  /** Exceptions that were logged: what nobody expected. Errors without one are news for the operator. */
  failures: { fields: Record<string, unknown>; text: string }[];
  ask(asked: ProgramRequest): Promise<ProgramResponse>;
  /** Parsed, over the admin socket; fails where it is not 2xx. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of many shapes
  admin(method: string, path: string, body?: unknown, account?: string): Promise<any>;
  /** Raw bytes to the public port; everything that comes until the server closes, or until `enough`. */
  raw(bytes: (string | Buffer)[], enough?: (answer: string) => boolean): Promise<string>;
  stop(): Promise<void>;
}

/** Every route, as data: their handlers are not to be called. */
export function routesAsData(): Route[] {
  const nothing: unknown = new Proxy(() => undefined, { get: () => nothing, apply: () => nothing });
  return allRoutes(nothing as RouteDeps);
}

export interface ProgramOptions {
  /** Sections of svc.yaml, in place of this file's own; `dns.servers` stays this file's. */
  config?: Record<string, object>;
  /** What the whole program takes for the time. */
  clock?: Clock;
  /** TLS with a certificate made at start, and with it the relay and the inbound port on loopback. */
  tls?: boolean;
}

export async function startProgram({
  config = {},
  clock,
  tls = false,
}: ProgramOptions = {}): Promise<Program> {
  const dir = mkdtempSync(join(tmpdir(), "svc-program-"));
  const socket = join(dir, "admin.sock");
  const dns = await startDnsServer();
  const high = { burst: 1e6, per_second: 1e6 };
  const settings = {
    hostname: "mail.svc.test",
    public_url: "https://mail.svc.test",
    data_dir: join(dir, "data"),
    tls: { mode: tls ? "self-signed" : "off" },
    http: { listen: ["127.0.0.1:0"], trusted_proxies: ["127.0.0.0/8"] },
    relay: tls
      ? { starttls: ["127.0.0.1:0", "127.0.0.1:0"], implicit_tls: ["127.0.0.1:0"] }
      : { starttls: [], implicit_tls: [] },
    inbound: { listen: tls ? ["127.0.0.1:0"] : [] },
    guard: false, // else the bounces of made-up domains pause the account
    limits: {
      min_free_space: "0%",
      rates: Object.fromEntries(Object.keys(rateTable).map((name) => [name, high])),
    },
    ...config,
    dns: { servers: [dns.server], timeout: "10s", ...config["dns"] },
  };
  const file = join(dir, "svc.yaml");
  const loaded = loadConfig({
    flags: { config: file, socket },
    env: {},
    home: dir,
    uid: 1000,
    readFile: (path) =>
      path === file
        ? JSON.stringify(settings)
        : path.startsWith(tmpdir())
          ? readFileSync(path, "utf8")
          : null,
    listDir: () => [],
  });
  if ("faults" in loaded) throw new Error(loaded.faults.map(faultText).join("\n"));

  const failures: Program["failures"] = [];
  const log: Log = {
    ...silentLog,
    error: (fields, text) => void ("err" in fields && failures.push({ fields, text })),
    component: () => log,
  };
  const daemon = await serve({ config: loaded.config, log, ...(clock ? { clock } : {}) });
  const portsOf = (name: string): number[] =>
    daemon
      .addresses()
      .flatMap((one) => (one.name === name ? [Number(/:(\d+)$/.exec(one.address)?.[1])] : []));
  const port = portsOf("http")[0] ?? 0;
  const agents = {
    public: tls
      ? new TlsAgent({ keepAlive: true, rejectUnauthorized: false })
      : new Agent({ keepAlive: true }),
    admin: new Agent({ keepAlive: true }),
  };

  const ask = ({
    method,
    target,
    headers = {},
    body,
    listener = "public",
  }: ProgramRequest): Promise<ProgramResponse> =>
    new Promise((resolve, reject) => {
      const where = listener === "admin" ? { socketPath: socket } : { host: "127.0.0.1", port };
      const own = listener === "admin" ? {} : { "x-forwarded-proto": "https" };
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const request = { ...where, method, path: target, headers: { ...own, ...length, ...headers } };
      const read = (res: IncomingMessage): void => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
        res.on("end", () =>
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      };
      const secure = tls && listener === "public";
      const req = (secure ? httpsRequest : httpRequest)({ ...request, agent: agents[listener] }, read);
      req.on("error", reject);
      req.setTimeout(100_000, () => req.destroy(new Error(`no answer within 100 s: ${method} ${target}`)));
      req.end(body);
    });

  const admin: Program["admin"] = async (method, path, body, account = "default") => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { "x-svc-account": account, "content-type": "application/json" };
    const told = await ask({ method, target: path, headers, ...content, listener: "admin" });
    if (told.status >= 300) throw new Error(`${method} ${path}: ${told.status} ${told.text}`);
    return told.text === "" ? null : JSON.parse(told.text);
  };
  const adminAsks = async (method: string, path: string, body?: unknown) => {
    const json: unknown = await admin(method, path, body);
    return { status: method === "POST" && body !== undefined ? 201 : 200, headers: {}, text: "", json };
  };
  await publish({ admin: adminAsks }, dns, "ok.test");

  return {
    dns,
    port,
    dataDir: settings.data_dir,
    mailPorts: portsOf,
    failures,
    ask,
    admin,
    raw: (pieces, enough = () => false) => exchange(port, pieces, enough),
    async stop() {
      for (const agent of Object.values(agents)) agent.destroy();
      await daemon.stop();
      await dns.stop();
      removeFolder(dir);
    },
  };
}

function exchange(
  port: number,
  pieces: (string | Buffer)[],
  enough: (answer: string) => boolean,
): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => {
      for (const piece of pieces) socket.write(piece);
    });
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
      if (enough(answer)) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer));
  });
}
