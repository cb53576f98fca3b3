// The built appliance as its own process, with a data directory of its own, for tests from the outside:
// real listeners, real files, real signals. Needs `npm run build` before.
import { randomInt } from "node:crypto";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, writeFileSync, existsSync, readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { createServer, type ListenOptions, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { once } from "node:events";
import { removeFolder } from "./folders.ts";

const root = resolve(import.meta.dirname, "../..");
export const program = join(root, "bin/svc");

interface RequestOptions {
  host?: string;
  port?: number;
  socketPath?: string;
  method: string;
  path: string;
  headers: OutgoingHttpHeaders;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of many shapes
  json: any;
}

export interface Appliance {
  dir: string;
  dataDir: string;
  socket: string;
  httpPort: number;
  starttlsPort: number;
  tlsPort: number;
  inboundPort: number;
  process: ChildProcess;
  /** What it has written to stderr so far. */
  log(): string;
  /** A request to the admin socket. */
  admin(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** A request to the public HTTPS port with an API key. */
  api(
    key: string,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  cli(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** Starts it again on the same data after `kill` or `stop`. */
  restart(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  stop(): Promise<void>;
}

export interface ApplianceOptions {
  /** Extra svc.yaml keys, by section; merged over the test's defaults. JSON is YAML. */
  config?: Record<string, unknown>;
  /** Where the data lives; by default a folder of the test's own. */
  dataDir?: string;
  /** Of its process; a function is asked at each start. */
  env?: Record<string, string> | (() => Record<string, string>);
}

/** Below the ports that a kernel gives to connections, which could take one while the appliance that it is for is down. */
const lowestPort = 10_000;
const portCount = 15_000;

/**
 * Ports that were free a moment ago and that are this process's until it ends: nobody else is given one while the appliance
 * that it is for is down between two starts.
 */
export async function freePorts(count: number, host = "127.0.0.1"): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = lowestPort + randomInt(portCount);
    if ((await reserve(port)) && (await isFree(port, host))) ports.push(port);
  }
  return ports;
}

/** One of those. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** A loopback address, one of sixteen million by chance, where a protocol says which port it is. */
export const freeAddress = (): string => `127.${1 + randomInt(254)}.${randomInt(256)}.${1 + randomInt(254)}`;

/** A socket in Linux's abstract namespace is one machine's alone, and goes with the process, however that ends. */
async function reserve(port: number): Promise<boolean> {
  const lock = createServer();
  const taken = await listens(lock, { path: `\0svc-test-port-${port}` });
  if (taken) lock.unref();
  return taken;
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  const free = await listens(server, { port, host });
  if (free) await new Promise((done) => server.close(done));
  return free;
}

function listens(server: Server, where: ListenOptions): Promise<boolean> {
  return once(server.listen(where), "listening").then(
    () => true,
    () => false,
  );
}

export async function startAppliance(options: ApplianceOptions = {}): Promise<Appliance> {
  const dir = mkdtempSync(join(tmpdir(), "svc-e2e-"));
  const dataDir = options.dataDir ?? join(dir, "data");
  const socket = join(dir, "admin.sock");
  const [httpPort = 0, starttlsPort = 0, tlsPort = 0, inboundPort = 0] = await freePorts(4);
  const configFile = join(dir, "svc.yaml");
  const config = merge(
    {
      hostname: "mail.svc.test",
      public_url: `https://127.0.0.1:${httpPort}`,
      data_dir: dataDir,
      http: { listen: [`127.0.0.1:${httpPort}`] },
      relay: { starttls: [`127.0.0.1:${starttlsPort}`], implicit_tls: [`127.0.0.1:${tlsPort}`] },
      inbound: { listen: [`127.0.0.1:${inboundPort}`] },
      limits: { min_free_space: "0%" },
      backup: { to: join(dir, "backups") },
    },
    options.config ?? {},
  );
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });

  let log = "";
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    // An abort leaves no core behind.
    const args = ["-c", 'ulimit -c 0; exec "$0" "$@"', program, "serve", "--config", configFile];
    const env = typeof options.env === "function" ? options.env() : options.env;
    child = spawn("/bin/sh", [...args, "--socket", socket], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, SVC_LOG_LEVEL: "info", ...env },
    });
    child.stderr?.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-200_000)));
    await ready(child, socket, () => log);
  };
  await start();

  const kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  };
  return {
    dir,
    dataDir,
    socket,
    httpPort,
    starttlsPort,
    tlsPort,
    inboundPort,
    get process() {
      return child;
    },
    log: () => log,
    admin: (method, path, body, headers = {}) =>
      exchange(false, { socketPath: socket, method, path, headers }, body),
    api: (key, method, path, body, headers = {}) =>
      exchange(
        true,
        {
          host: "127.0.0.1",
          port: httpPort,
          method,
          path,
          headers: { authorization: `Bearer ${key}`, ...headers },
        },
        body,
      ),
    cli: (...args) => runCli(args, { SVC_SOCKET: socket }),
    restart: start,
    kill,
    async stop() {
      await kill("SIGTERM");
      removeFolder(dir);
    },
  };
}

/** One run of the command-line program. */
export async function runCli(
  args: string[],
  env: Record<string, string> = {},
  input = "",
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  return { code: code ?? -1, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() };
}

/** Asks until `look` gives something. How long it takes depends on the product; `ms` only ends a hang. */
export async function eventually<T>(
  look: () => Promise<T | null | undefined | false>,
  ms = 120_000,
  what = "it",
): Promise<T> {
  const end = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`${what} did not happen within ${ms} ms`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function ready(child: ChildProcess, socket: string, log: () => string): Promise<void> {
  await eventually(
    async () => {
      if (child.exitCode !== null)
        throw new Error(`svc serve ended with ${child.exitCode}:\n${log().slice(-1500)}`);
      if (!existsSync(socket)) return false;
      const answer = await exchange(false, {
        socketPath: socket,
        method: "GET",
        path: "/v1/status",
        headers: {},
      }).catch(() => null);
      return answer?.status === 200;
    },
    120_000,
    "svc serve becoming ready",
  );
}

/** One request over a fresh connection: TLS without a check of the certificate, or the admin socket. */
function exchange(secure: boolean, options: RequestOptions, body?: unknown): Promise<Answer> {
  return new Promise((resolveAnswer, reject) => {
    const raw = bodyOf(body);
    const length = raw ? { "content-type": "application/json", "content-length": String(raw.length) } : {};
    const full = { ...options, agent: false, headers: { ...length, ...options.headers } };
    const receive = (res: IncomingMessage): void => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("error", reject);
      res.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolveAnswer({ status: res.statusCode ?? 0, headers: res.headers, text, json: parsed(text) });
      });
    };
    const req = secure
      ? httpsRequest({ ...full, rejectUnauthorized: false }, receive)
      : httpRequest(full, receive);
    req.on("error", reject);
    req.setTimeout(120_000, () => req.destroy(new Error("no answer within 120 s")));
    req.end(raw ?? undefined);
  });
}

function bodyOf(body: unknown): Buffer | null {
  if (body === undefined) return null;
  return Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function merge(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    const both = isObject(below) && isObject(value);
    result[key] = both ? merge(below, value) : value;
  }
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The certificate that the appliance made for itself. */
export function ownCertificate(appliance: Pick<Appliance, "dataDir">): string {
  return readFileSync(join(appliance.dataDir, "tls/cert.pem"), "utf8");
}
