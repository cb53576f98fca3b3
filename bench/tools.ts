// The small C programs beside the bench: compiled once into the bench's folder, and how they are called.
import { execFileSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createGroup, type Group } from "./group.ts";

/** Queues and databases live here: it must be on a real disk. */
export const folder = process.env["SVC_BENCH_DIR"] ?? "/var/tmp/svc-bench";
const shared = "/dev/shm";
const firstPort = Number(process.env["SVC_BENCH_PORTS"] ?? 25_000);
export const ports = {
  sink: firstPort + 25,
  inbound: firstPort + 26,
  smtp: firstPort + 100,
  /** SMTP with TLS from the first byte. */
  smtps: firstPort + 101,
  https: firstPort + 443,
  webhooks: firstPort + 444,
};

export interface Tools {
  sink: string;
  source: string;
  slowDisk: string;
}

export function compile(): Tools {
  const native = join(import.meta.dirname, "native");
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const build = (name: string, output: string, flags: string[]): string => {
    const [from, to] = [join(native, name), join(folder, output)];
    // Each time: the folder is all checkouts', and another's newer program may ask for other arguments.
    execFileSync("gcc", ["-O2", "-o", to, from, ...flags]);
    return to;
  };
  return {
    sink: build("sink.c", "sink", []),
    source: build("source.c", "source", ["-lssl", "-lcrypto"]),
    slowDisk: build("slowdisk.c", "slowdisk.so", ["-shared", "-fPIC"]),
  };
}

export interface SinkOptions {
  /** Loopback addresses beside 127.0.0.1. */
  addresses?: number;
  delayMs?: number;
  deferPercent?: number;
}

export interface SinkStats {
  messages: number;
  /** CLOCK_MONOTONIC, nanoseconds. */
  lastNs: number;
  connections: number;
  signatures: number;
  deferred: number;
  mostOpen: number;
  /** The last 250 or 451. */
  answeredNs: number;
}

export interface Sink {
  group: Group;
  stats(): SinkStats;
  reset(): Promise<void>;
  /** When the mails numbered from `first` on were answered with 250; 0: not. CLOCK_MONOTONIC, nanoseconds. */
  deliveredNs(first: number, count: number): BigUint64Array;
  stop(): Promise<void>;
}

const headerBytes = 128;

export async function startSink(tools: Tools, options: SinkOptions = {}): Promise<Sink> {
  const group = createGroup("sink");
  const file = join(shared, `svc-bench-${process.pid}-sink`);
  const { addresses = 0, delayMs = 0, deferPercent = 0 } = options;
  const child = group.spawn(
    tools.sink,
    [file, String(ports.sink), String(addresses), String(delayMs), String(deferPercent)],
    { stdio: ["ignore", "pipe", 2] },
  );
  await firstOutput(child, "the sink");
  const handle = openSync(file, "r");
  rmSync(file); // both sides hold it; nothing is left behind
  const read = (position: number, count: number): BigUint64Array => {
    const bytes = Buffer.alloc(count * 8);
    readSync(handle, bytes, 0, bytes.length, position);
    return new BigUint64Array(bytes.buffer, bytes.byteOffset, count);
  };
  const stats = (): SinkStats => {
    const [
      messages = 0,
      ,
      lastNs = 0,
      ,
      connections = 0,
      signatures = 0,
      deferred = 0,
      ,
      mostOpen = 0,
      answeredNs = 0,
    ] = Array.from(read(0, 10), Number);
    return { messages, lastNs, connections, signatures, deferred, mostOpen, answeredNs };
  };
  return {
    group,
    stats,
    async reset() {
      child.kill("SIGUSR1");
      while (stats().messages > 0 || stats().deferred > 0) await wait(2);
    },
    deliveredNs: (first, count) => read(headerBytes + first * 8, count),
    async stop() {
      closeSync(handle);
      await group.end();
    },
  };
}

async function firstOutput(child: ChildProcess, what: string): Promise<void> {
  const ended = once(child, "exit").then(() => {
    throw new Error(`${what} ended at its start`);
  });
  ended.catch(() => undefined);
  if (child.stdout) await Promise.race([once(child.stdout, "data"), ended]);
}

export interface SourceWork {
  messages: number;
  sizeBytes: number;
  sessions: number;
}

export interface Login {
  username: string;
  password: string;
}

/** What a client does that smtp-source cannot do. */
export interface ClientWays {
  /** MAIL, RCPT and DATA in one write. */
  pipelined?: boolean;
  /** One for each mail. */
  newConnections?: boolean;
  tls?: boolean;
  /** AUTH PLAIN in each session. */
  login?: Login;
}

export interface SourceResult {
  /** CLOCK_MONOTONIC, nanoseconds. */
  beganNs: number;
  endedNs: number;
}

export const nowNs = (): number => Number(process.hrtime.bigint());

/** Postfix's smtp-source: mails without a number, all to rcpt@d0.test. */
export async function runSmtpSource(
  group: Group,
  port: number,
  work: SourceWork & { newConnections: boolean },
): Promise<SourceResult> {
  const args = ["-s", String(work.sessions), "-m", String(work.messages), "-l", String(work.sizeBytes)];
  if (!work.newConnections) args.unshift("-d");
  args.push("-S", "measured", "-f", "sender@example.test", "-t", "rcpt@d0.test", `inet:127.0.0.1:${port}`);
  const beganNs = nowNs();
  await finished(group.spawn("smtp-source", args), "smtp-source");
  return { beganNs, endedNs: nowNs() };
}

/** Our own: numbered mails to many destinations, at a given rate, in the ways given; answers when each was accepted. */
export async function runSource(
  group: Group,
  tools: Tools,
  port: number,
  work: SourceWork & ClientWays & { destinations: number; perSecond: number; firstNumber: number },
): Promise<SourceResult & { acceptedNs: BigUint64Array }> {
  const file = join(shared, `svc-bench-${process.pid}-source`);
  const args = [file, "127.0.0.1", port, work.sessions, work.messages, work.sizeBytes, work.destinations];
  args.push(work.perSecond, work.firstNumber, Number(work.tls ?? false), plainLogin(work.login));
  args.push(Number(work.newConnections ?? false), Number(work.pipelined ?? false));
  const beganNs = nowNs();
  const output = await finished(group.spawn(tools.source, args.map(String)), "source");
  const endedNs = nowNs();
  const [accepted = 0, refused = 0] = output.split(" ").map(Number);
  if (refused > 0) throw new Error(`${refused} mails were refused, ${accepted} accepted`);
  const bytes = readFileSync(file);
  rmSync(file);
  return {
    beganNs,
    endedNs,
    acceptedNs: new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8),
  };
}

/** RFC 4616 §2. */
const plainLogin = (login: Login | undefined): string =>
  login === undefined ? "-" : Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");

async function finished(child: ChildProcess, what: string): Promise<string> {
  let [output, errors] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-2000)));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${errors}`);
  return output;
}
