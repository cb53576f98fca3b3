// The daemon as the command line reaches it: HTTP on the API's own routes, over the admin
// socket, or over HTTPS with an API key. Answers other than success become faults with the exit code that
// their status means and with what to do about it. HTTP and TLS are loaded by the first request that needs them: they cost
// more than all else of a command that asks for nothing.
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { CliFault } from "./fault.ts";
import { refusal } from "./refusal.ts";

export interface Call {
  query?: Record<string, string | number | undefined> | undefined;
  body?: unknown;
  accept?: string;
  idempotencyKey?: string | undefined;
}

export interface Answer {
  status: number;
  bytes: Buffer;
  /** The body as text. */
  text: string;
  /** The body as JSON; an empty object where there is none. */
  json: Record<string, unknown>;
}

export interface Client {
  call(method: string, path: string, call?: Call): Promise<Answer>;
  /** A body of any length, in pieces as they come. */
  chunks(path: string, call: Call): AsyncIterable<Buffer>;
  /** Lines of an NDJSON stream as they come; empty ones (heartbeats) are left out. */
  lines(path: string, query: NonNullable<Call["query"]>): AsyncIterable<string>;
}

export interface Target {
  /** Sockets in the order to try; or an HTTPS address with an API key. */
  way: { sockets: string[]; more: () => Promise<string | null> } | { url: URL; apiKey: string };
  account: string | null;
  operator: string;
  /** As the person calls this program: `svc`, `bin/svc`. */
  program: string;
}

interface Exchange extends RequestOptions {
  headers: Record<string, string>;
}

const largestAnswer = 64 * 2 ** 20;
const longestLine = 4 * 2 ** 20;
const idleMs = 60_000;
const streamIdleMs = 45_000; // three heartbeats

export function createClient(target: Target): Client {
  const own: Record<string, string> = { "x-svc-operator": target.operator.replace(/[^\x20-\x7e]/g, "?") };
  if (target.account !== null) own["x-svc-account"] = target.account;

  const open = async (method: string, path: string, call: Call): Promise<IncomingMessage> => {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {}))
      if (value !== undefined) query.set(name, String(value));
    const body = call.body === undefined ? null : Buffer.from(JSON.stringify(call.body));
    const remote = "url" in target.way;
    const options: Exchange = {
      method,
      path: query.size > 0 ? `${path}?${query.toString()}` : path,
      agent: false,
      headers: {
        ...(call.idempotencyKey === undefined ? {} : { "idempotency-key": call.idempotencyKey }),
        ...(remote ? {} : own),
        accept: call.accept ?? "application/json",
        ...(body === null
          ? {}
          : { "content-type": "application/json", "content-length": String(body.length) }),
      },
    };
    if ("url" in target.way) return overHttps(target.way, options, body, target.program);
    return overSocket(target.way, options, body, target.program);
  };

  return {
    async call(method, path, call = {}) {
      const response = await open(method, path, call);
      const answer = await readAnswer(response);
      if (answer.status >= 200 && answer.status < 300) return answer;
      throw refusal(answer, target.program);
    },
    async *chunks(path, call) {
      const response = await open("GET", path, call);
      if (response.statusCode !== 200) throw refusal(await readAnswer(response), target.program);
      try {
        yield* response as AsyncIterable<Buffer>;
      } catch (error) {
        throw new CliFault(6, `the answer was interrupted: ${messageOf(error)}`);
      }
    },
    async *lines(path, query) {
      const response = await open("GET", path, { query, accept: "application/x-ndjson" });
      if (response.statusCode !== 200) throw refusal(await readAnswer(response), target.program);
      response.socket.setTimeout(streamIdleMs, () =>
        response.destroy(new Error("nothing came for 45 seconds")),
      );
      try {
        yield* splitLines(response);
      } catch (error) {
        throw new CliFault(6, `the stream was interrupted: ${messageOf(error)}`);
      } finally {
        response.destroy();
      }
    },
  };
}

async function overHttps(
  way: { url: URL; apiKey: string },
  options: Exchange,
  body: Buffer | null,
  program: string,
): Promise<IncomingMessage> {
  const headers = { ...options.headers, authorization: `Bearer ${way.apiKey}` };
  const { request } = await import("node:https");
  try {
    return await send(
      request(new URL(options.path ?? "/", way.url), { ...options, path: options.path, headers }),
      body,
    );
  } catch (error) {
    if (untrusted(error))
      throw new CliFault(6, `the certificate of ${way.url.origin} is not trusted here: ${messageOf(error)}`, [
        "Name the file of the certificate or of its authority (a self-signed one of svc is",
        `DATA_DIR/tls/cert.pem): NODE_EXTRA_CA_CERTS=FILE ${program} …`,
      ]);
    throw new CliFault(6, `${way.url.origin} does not answer: ${messageOf(error)}`, [
      `Check the address of --url, and run \`${program} status\` on the server.`,
    ]);
  }
}

/** Codes of Node and OpenSSL for a chain or a name that does not verify. */
function untrusted(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /CERT|UNABLE_TO_(?:VERIFY|GET_ISSUER)/.test(code);
}

/** Tries socket after socket while none takes the connection. */
async function overSocket(
  way: { sockets: string[]; more: () => Promise<string | null> },
  options: RequestOptions,
  body: Buffer | null,
  program: string,
): Promise<IncomingMessage> {
  const { request } = await import("node:http");
  const tried: { path: string; code: string; why: string }[] = [];
  const attempt = async (path: string): Promise<IncomingMessage | null> => {
    try {
      return await send(request({ ...options, socketPath: path }), body);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      tried.push({ path, code, why: reasons[code] ?? messageOf(error) });
      if (["ENOENT", "ECONNREFUSED", "EACCES", "ENOTSOCK", "ENOTDIR"].includes(code)) return null;
      throw new CliFault(6, `the daemon at ${path} was interrupted: ${messageOf(error)}`, [
        `Check whether it runs: ${program} status`,
      ]);
    }
  };
  for (const path of way.sockets) {
    const response = await attempt(path);
    if (response) return response;
  }
  const more = await way.more();
  const last = more === null || way.sockets.includes(more) ? null : await attempt(more);
  if (last) return last;

  const closed = tried.find((one) => one.code === "EACCES");
  if (closed)
    throw new CliFault(4, `no permission to open the admin socket ${closed.path}`, [
      `Run the command with sudo, or join its group: sudo usermod -aG svc "$USER" and log in again.`,
      `If no daemon runs there, start your own: ${program} serve`,
    ]);
  const where = tried.map(({ path, why }) => `${path} (${why})`).join(", ");
  throw new CliFault(6, `no daemon answers at ${where}`, [
    `Start it: \`${program} serve\`, or \`${program} serve --dev\` for evaluation.`,
    "If it runs elsewhere, name its socket with --socket PATH or SVC_SOCKET, or use --url with --api-key-file.",
  ]);
}

const reasons: Record<string, string> = {
  ENOENT: "not there",
  ECONNREFUSED: "connection refused",
  EACCES: "not permitted",
  ENOTSOCK: "no socket",
  ENOTDIR: "not there",
};

function send(request: ClientRequest, body: Buffer | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
    request.setTimeout(idleMs, () => request.destroy(new Error("no answer within 60 seconds")));
    request.end(body ?? undefined);
  });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > largestAnswer) throw new Error("the answer is larger than 64 MB");
      chunks.push(chunk);
    }
  } catch (error) {
    throw new CliFault(6, `the answer was interrupted: ${messageOf(error)}`);
  }
  const bytes = Buffer.concat(chunks);
  const isJson = bytes.length > 0 && /json/.test(response.headers["content-type"] ?? "");
  return {
    status: response.statusCode ?? 0,
    bytes,
    text: isJson ? bytes.toString() : "",
    json: isJson ? objectOf(bytes) : {},
  };
}

async function* splitLines(response: AsyncIterable<Buffer>): AsyncIterable<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > longestLine) throw new Error("a line is longer than 4 MB");
    for (const line of lines) if (line.trim() !== "") yield line;
  }
}

function objectOf(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
  } catch {
    throw new CliFault(1, "the daemon's answer is not JSON");
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
