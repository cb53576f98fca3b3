// What the tests of examples/ put around a program in another language: a server that answers by a script, a gateway
// for CGI programs, a front that ends TLS, and the program itself with what it prints.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import {
  createServer as createHttpServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { selfSigned } from "./webhook-receiver.ts";
import { removeFolder } from "./folders.ts";

/** What is missing of these programs; null where all are there. Missing in CI is a failure. */
export function missingTools(names: string[]): string | null {
  const missing = names.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
  if (missing.length === 0) return null;
  const text = `no ${missing.join(", no ")}: run .ci/peers.sh as root`;
  if (process.env["CI"]) throw new Error(`tests of the examples cannot run: ${text}`);
  return text;
}

export type Env = Record<string, string>;

export interface Launched {
  process: ChildProcess;
  out(): string;
  err(): string;
  /** Resolves with its exit code, -1 where a signal ended it. */
  ended(): Promise<number>;
}

export function launch([command = "", ...args]: string[], env: Env, cwd?: string): Launched {
  const child = spawn(command, args, { env: { ...process.env, ...env }, ...(cwd ? { cwd } : {}) });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const closed = once(child, "close");
  return {
    process: child,
    out: () => out,
    err: () => err,
    async ended() {
      await closed;
      return child.exitCode ?? -1;
    },
  };
}

export interface Try {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Milliseconds, of a clock that only goes forward. */
  at: number;
}

/** "drop": the connection ends without an answer. */
export type Scripted = { status: number; retryAfter?: number; body?: unknown } | "drop";

export interface ScriptedServer {
  tries: Try[];
  /** Where it is, and whose certificate it shows. */
  env: Env;
  stop(): Promise<void>;
}

/** Answers each request with the next line of the script, over TLS; 418 when it is over. */
export async function startScripted(script: Scripted[]): Promise<ScriptedServer> {
  const tries: Try[] = [];
  const secure = await startSecure(async (request, response) => {
    const body = (await bytesOf(request)).toString();
    const next = script[tries.length] ?? { status: 418 };
    const { method = "", url = "", headers } = request;
    tries.push({ method, path: url, headers, body, at: performance.now() });
    if (next === "drop") return void request.socket.destroy();
    response.writeHead(next.status, {
      "content-type": next.status < 400 ? "application/json" : "application/problem+json",
      ...(next.retryAfter === undefined ? {} : { "retry-after": String(next.retryAfter) }),
    });
    response.end(next.body === undefined ? "" : JSON.stringify(next.body));
  });
  const env = {
    SVC_BASE_URL: `https://127.0.0.1:${secure.port}`,
    SVC_CA_FILE: secure.caFile,
    SVC_API_KEY: "svc_test_k",
  };
  return { tries, env, stop: secure.stop };
}

export interface TlsFront {
  url: string;
  caFile: string;
  /** Where requests go from now on: a port of 127.0.0.1. */
  target(port: number): void;
  stop(): Promise<void>;
}

/** What stands before a receiver in real life: it has the certificate, and passes everything on. */
export async function startTlsFront(): Promise<TlsFront> {
  let target = 0;
  const secure = await startSecure(async (request, response) => {
    const body = await bytesOf(request);
    const { method = "", headers } = request;
    const status = await postTo(target, body, headers as Env, method);
    response.writeHead(status).end();
  });
  const { port, caFile, stop } = secure;
  return { url: `https://localhost:${port}/hook`, caFile, target: (next) => void (target = next), stop };
}

/** Runs the program for each request, as RFC 3875 says. */
export async function startCgi(
  port: number,
  [command = "", ...args]: string[],
  env: Env,
): Promise<() => Promise<void>> {
  const server = createHttpServer((request, response) => {
    void (async () => {
      const body = await bytesOf(request);
      const fields = Object.entries(request.headers).map(([name, value]): [string, string] => [
        `HTTP_${name.toUpperCase().replaceAll("-", "_")}`,
        String(value),
      ]);
      const more = { REQUEST_METHOD: request.method ?? "", CONTENT_LENGTH: String(body.length) };
      const child = spawn(command, args, {
        env: { ...process.env, ...env, ...Object.fromEntries(fields), ...more },
        stdio: ["pipe", "pipe", "inherit"],
      });
      let said = "";
      child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
      child.stdin.on("error", () => undefined).end(body);
      await once(child, "close");
      response.writeHead(Number(/^Status: (\d+)/.exec(said)?.[1] ?? 500)).end();
    })();
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return () => closed(server);
}

/** The status of one request to a port of 127.0.0.1. */
export async function postTo(port: number, body: Buffer, headers: Env, method = "POST"): Promise<number> {
  const fields = { ...headers, "content-type": "application/json", "content-length": String(body.length) };
  const request = httpRequest({ host: "127.0.0.1", port, method, headers: fields, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  await bytesOf(response);
  return response.statusCode ?? 0;
}

async function startSecure(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ port: number; caFile: string; stop(): Promise<void> }> {
  const { key, cert } = await selfSigned({});
  const folder = mkdtempSync(join(tmpdir(), "svc-examples-tls-"));
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, cert);
  const server = createHttpsServer({ key, cert }, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    caFile,
    async stop() {
      await closed(server);
      removeFolder(folder);
    },
  };
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
