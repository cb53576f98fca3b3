// A daemon that answers from a table, on a Unix socket in a directory of its own, and a world in which the
// command line runs and records what it printed.
import { mkdtempSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import type { DaemonModule } from "../../src/cli/daemon-contract.ts";
import type { Io, Sink } from "../../src/cli/io.ts";
import { run } from "../../src/cli/main.ts";
import type { Clock } from "../../src/clock.ts";
import { ManualClock } from "../support/clock.ts";
import { removeFolder } from "../support/folders.ts";

export interface Seen {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: IncomingMessage["headers"];
  body: unknown;
}
export interface Reply {
  status?: number;
  json?: unknown;
  /** Sent as it is. */
  text?: string;
  type?: string;
  /** Breaks the connection off after what was written. */
  cut?: boolean;
}
type Answers = Record<string, Reply | ((seen: Seen) => Reply)>;

export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-cli-"));
  onTestFinished(() => removeFolder(directory));
  return directory;
}

/** Routes are `GET /v1/keys`; anything else is a 404 in the API's form. */
export async function fakeDaemon(answers: Answers): Promise<{ socket: string; seen: Seen[] }> {
  const socket = join(scratch(), "admin.sock");
  const seen: Seen[] = [];
  const server = createServer((request, response) => void handle(request, response, answers, seen));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { socket, seen };
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  seen: Seen[],
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const url = new URL(request.url ?? "/", "http://socket");
  const body = Buffer.concat(chunks).toString();
  const call: Seen = {
    method: request.method ?? "",
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: request.headers,
    body: body === "" ? undefined : JSON.parse(body),
  };
  seen.push(call);
  const answer = answers[`${call.method} ${call.path}`] ?? {
    status: 404,
    json: {
      title: "Not found",
      status: 404,
      detail: "There is no such thing.",
      code: "resource_not_found",
      request_id: "req_1",
    },
  };
  const { status = 200, json, text, type, cut } = typeof answer === "function" ? answer(call) : answer;
  response.writeHead(status, { "content-type": type ?? "application/json" });
  const bytes = text ?? (json === undefined ? "" : JSON.stringify(json));
  if (cut) response.write(bytes, () => response.destroy());
  else response.end(bytes);
}

export interface World {
  socket?: string;
  env?: Record<string, string>;
  stdin?: string;
  tty?: boolean;
  columns?: number;
  clock?: Clock;
  home?: string;
  uid?: number;
  cwd?: string;
  daemon?: DaemonModule;
  /** Gets the way to raise a signal. */
  signals?: (raise: (name: string) => void) => void;
  exit?: (code: number) => void;
  /** Gets what is printed on stdout as it is, for a command that goes on. */
  printed?: (text: string) => void;
}

export interface Ran {
  code: number;
  out: string;
  err: string;
}

/** Runs one command line. Without `socket` none is named. */
export async function svc(args: string[], world: World = {}): Promise<Ran> {
  const printed = { out: "", err: "" };
  const sink = (name: "out" | "err"): Sink => ({
    isTTY: world.tty ?? false,
    columns: world.columns ?? 80,
    write(bytes) {
      const text = typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("latin1");
      printed[name] += text;
      if (name === "out") world.printed?.(text);
      return true;
    },
    drained: async () => undefined,
  });
  const handlers: { name: string; run: () => void }[] = [];
  world.signals?.((name) => {
    for (const handler of handlers.filter((one) => one.name === name)) handler.run();
  });
  const io: Io = {
    stdout: sink("out"),
    stderr: sink("err"),
    stdin: {
      isTTY: world.tty ?? false,
      stream: Readable.from(world.stdin === undefined ? [] : [Buffer.from(world.stdin)]),
    },
    env: { USER: "ann", ...(world.socket === undefined ? {} : { SVC_SOCKET: world.socket }), ...world.env },
    home: world.home ?? "/nowhere",
    uid: world.uid ?? 1000,
    cwd: world.cwd ?? "/",
    clock: world.clock ?? new ManualClock(),
    onSignal(name, handler) {
      const entry = { name, run: handler };
      handlers.push(entry);
      return () => void handlers.splice(handlers.indexOf(entry), 1);
    },
    exit: (code) => world.exit?.(code),
  };
  const daemon = world.daemon;
  const code = await run(args, io, async () => {
    if (!daemon) throw new Error("this command must not load the daemon");
    return daemon;
  });
  return { code, ...printed };
}

export const page = (data: unknown[], next: string | null = null): Reply => ({
  json: { data, has_more: next !== null, next_cursor: next },
});
