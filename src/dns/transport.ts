// One question to one server and its reply, over UDP, and over TCP where the reply was too long
// (RFC 7766). Against forgery (RFC 5452): a socket of its own for each question, so a random source port; a random
// id; connected, so that the kernel drops what comes from elsewhere; the echoed question compared. Which server is
// asked, and again, is resolve.ts's.
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import type { Clock } from "../clock.ts";
import { decodeReply, encodeQuery, MalformedReply } from "./message.ts";
import type { Question, Reply } from "./message.ts";
import type { DnsServerAddress } from "./servers.ts";

export type Exchange = { kind: "reply"; reply: Reply } | { kind: "failed"; why: string };

export interface Transport {
  /** Never throws. Answers within `timeoutMs`, twice that where TCP is needed, counted from when a socket is free. */
  ask(server: DnsServerAddress, question: Question, edns: boolean): Promise<Exchange>;
  /** What is in flight fails; nothing more is asked. */
  stop(): void;
}

/** Questions in flight, each with a file descriptor; others wait their turn. */
const maxInFlight = 256;
/** Datagrams that are not our reply, before a guessing attacker is taken for one. */
const maxStrays = 64;

const stopped: Exchange = { kind: "failed", why: "the resolver was stopped" };

type Finish = (result: Exchange) => void;
/** Opens a socket, asks, calls back once; answers how to close it. */
type Conversation = (
  server: DnsServerAddress,
  id: number,
  question: Question,
  edns: boolean,
  finish: Finish,
) => () => void;

export function createTransport(deps: { timeoutMs: number; clock: Clock }): Transport {
  const open = new Set<Finish>();
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  let running = true;

  const converse = (
    talk: Conversation,
    server: DnsServerAddress,
    question: Question,
    edns: boolean,
  ): Promise<Exchange> =>
    new Promise((resolve) => {
      if (!running) return resolve(stopped);
      let close = (): void => undefined;
      const finish: Finish = (result) => {
        if (!open.delete(finish)) return;
        timer.cancel();
        close();
        resolve(result);
      };
      open.add(finish);
      const timer = deps.clock.after(deps.timeoutMs, () =>
        finish({ kind: "failed", why: `no answer within ${deps.timeoutMs} ms` }),
      );
      close = talk(server, randomInt(0x10000), question, edns, finish);
      if (!open.has(finish)) close();
    });

  return {
    async ask(server, question, edns) {
      if (inFlight < maxInFlight) inFlight++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        const first = await converse(overUdp, server, question, edns);
        if (first.kind === "failed" || !first.reply.truncated) return first;
        const whole = await converse(overTcp, server, question, edns);
        return whole.kind === "reply" && whole.reply.truncated
          ? { kind: "failed", why: "the answer is cut short over TCP too" }
          : whole;
      } finally {
        const next = waiting.shift(); // takes this place over
        if (next) next();
        else inFlight--;
      }
    },
    stop() {
      running = false;
      for (const finish of open) finish(stopped);
    },
  };
}

const overUdp: Conversation = (server, id, question, edns, finish) => {
  const socket = createSocket(server.family === 6 ? "udp6" : "udp4");
  let strays = 0;
  let closed = false;
  socket.on("error", (error) => finish({ kind: "failed", why: error.message }));
  socket.on("message", (bytes) => {
    const result = understand(bytes, id, question);
    if (result) finish(result);
    else if (++strays > maxStrays)
      finish({ kind: "failed", why: "too many answers that were not to this question" });
  });
  socket.connect(server.port, server.address, () => {
    if (!closed) socket.send(encodeQuery(id, question, edns));
  });
  return () => {
    closed = true;
    socket.close();
  };
};

const overTcp: Conversation = (server, id, question, edns, finish) => {
  const socket = connect({ host: server.address, port: server.port });
  let held: Buffer = Buffer.alloc(0);
  socket.on("connect", () => {
    const query = encodeQuery(id, question, edns);
    socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 0xff]), query]));
  });
  socket.on("data", (chunk) => {
    held = Buffer.concat([held, chunk]); // 65,537 bytes at most before the length is reached
    if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return;
    const result = understand(held.subarray(2, 2 + held.readUInt16BE(0)), id, question);
    finish(result ?? { kind: "failed", why: "an answer to another question over TCP" });
  });
  socket.on("error", (error) => finish({ kind: "failed", why: `TCP: ${error.message}` }));
  socket.on("close", () => finish({ kind: "failed", why: "TCP was closed before the answer" }));
  return () => socket.destroy();
};

function understand(bytes: Buffer, id: number, question: Question): Exchange | null {
  try {
    const reply = decodeReply(bytes, id, question);
    return reply && { kind: "reply", reply };
  } catch (error) {
    if (error instanceof MalformedReply)
      return { kind: "failed", why: `an answer that cannot be read: ${error.message}` };
    throw error;
  }
}
