// What attackers write with: connections from many addresses of loopback, opened some at a time, TLS sessions resumed so
// that handshakes cost the attacker (and the service) as little as they can, and bytes made beforehand.
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { setTimeout as wait } from "node:timers/promises";
import type { Facts } from "./attack.ts";

/** The n-th address of 127.0.BLOCK.1 to 127.0.BLOCK.250, so many connections each. */
export function source(block: number, n: number, perSource: number): string {
  return `127.0.${block}.${1 + (Math.floor(n / perSource) % 250)}`;
}

/** Resolves to null where nothing comes of it within ten seconds. */
export function dialTcp(port: number, localAddress: string): Promise<Socket | null> {
  return new Promise((done) => {
    const socket = connectTcp({ host: "127.0.0.1", port, localAddress, noDelay: true }, () => done(socket));
    socket.on("error", () => done(null)).on("close", () => done(null));
    setTimeout(() => done(null), 10_000).unref();
  });
}

let session: Buffer | undefined;

/** The same, after the handshake. */
export async function dialTls(port: number, localAddress: string): Promise<TLSSocket | null> {
  const tcp = await dialTcp(port, localAddress);
  if (!tcp) return null;
  return new Promise((done) => {
    const options = { socket: tcp, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] };
    const socket = connectTls(session === undefined ? options : { ...options, session }, () => done(socket));
    socket.once("session", (made) => (session ??= made));
    socket.on("error", () => done(null)).on("close", () => done(null));
    setTimeout(() => done(null), 10_000).unref();
  });
}

/** `work` for 0 to `count` − 1, so many at a time, until aborted. Results in no order. */
export async function inParallel<T>(
  count: number,
  atATime: number,
  signal: AbortSignal,
  work: (n: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && !signal.aborted) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return results;
}

/**
 * Holds `count` connections: so many new ones a second, and a new one in place of each that is closed. Answers what was
 * held in the end and how often it was turned away.
 */
export async function hold(
  count: number,
  perSecond: number,
  signal: AbortSignal,
  dial: (n: number) => Promise<Socket | null>,
  onOpen: (socket: Socket, n: number) => void,
): Promise<Facts> {
  const open = new Set<Socket>();
  let [tried, failed, lost, pending] = [0, 0, 0, 0];
  const one = async (): Promise<void> => {
    const n = tried++;
    pending++;
    const socket = await dial(n);
    pending--;
    if (!socket || signal.aborted) return void failed++;
    open.add(socket);
    socket.once("close", () => {
      lost++;
      open.delete(socket);
    });
    onOpen(socket, n);
  };
  const tickMs = 20;
  let [most, due] = [0, 0];
  while (!signal.aborted) {
    due = Math.min(perSecond, due + (perSecond * tickMs) / 1000);
    for (; due >= 1 && open.size + pending < count; due--) void one();
    most = Math.max(most, open.size);
    await wait(tickMs);
  }
  return {
    "connections wanted": count,
    "held at most": most,
    "held at the end": open.size,
    dialled: tried,
    "not let in": failed,
    "closed by the product": lost,
  };
}

/** Resolves when the attack is to end. */
export async function until(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await wait(50);
}

export interface Heard {
  status: number;
  /** Head and body. */
  text: string;
  /** Of the body. */
  bytes: number;
}

const lastChunk = "\r\n0\r\n\r\n";

/** Asks and reads answers to their end, one after the other, on a kept connection; null: it was closed. */
export function asker(socket: Socket): (request: string | Buffer) => Promise<Heard | null> {
  let [head, bytes, length, tail] = ["", 0, -1, ""];
  let done: ((heard: Heard | null) => void) | null = null;
  const finish = (heard: Heard | null): void => {
    const tell = done;
    [head, bytes, length, tail, done] = ["", 0, -1, "", null];
    tell?.(heard);
  };
  socket.on("data", (chunk: Buffer) => {
    if (length >= 0) bytes += chunk.length;
    if (head.length < 65_536) head += chunk.toString("latin1");
    const end = length < 0 ? head.indexOf("\r\n\r\n") : -1;
    if (end >= 0) {
      const chunked = /\r\ntransfer-encoding: *chunked/i.test(head);
      length = chunked ? Infinity : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      bytes = head.length - end - 4;
    }
    tail = (tail + chunk.subarray(-lastChunk.length).toString("latin1")).slice(-lastChunk.length);
    if (length >= 0 && (bytes >= length || (length === Infinity && tail === lastChunk)))
      finish({ status: Number(head.slice(9, 12)), text: head, bytes });
  });
  socket.on("close", () => finish(null)).on("error", () => finish(null));
  return (request) =>
    new Promise((tell) => {
      if (socket.destroyed) return tell(null);
      done = tell;
      socket.write(request);
    });
}

export function requestText(
  method: string,
  path: string,
  key: string | null,
  body: string | null,
  more = "",
): string {
  const authorization = key === null ? "" : `Authorization: Bearer ${key}\r\n`;
  const type =
    body === null ? "" : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}${type}${more}\r\n${body ?? ""}`;
}

/** How often each answer was given, and the longest one's first words. */
export function tally(): { add(key: string): void; facts(prefix: string): Facts } {
  const counts = new Map<string, number>();
  return {
    add: (key) => void counts.set(key, (counts.get(key) ?? 0) + 1),
    facts: (prefix) =>
      Object.fromEntries(
        [...counts]
          .toSorted((a, b) => b[1] - a[1])
          .slice(0, 6)
          .map(([key, count]) => [`${prefix} ${key}`.slice(0, 220), count]),
      ),
  };
}
