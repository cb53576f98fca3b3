// One question to one server and its reply, over UDP, and over TCP where the reply was too long
// (RFC 7766). Against forgery (RFC 5452): a socket of its own for each question, so a random source port; a random
// id; connected, so that the kernel drops what comes from elsewhere; the name in a random case, which the reply must
// repeat (draft-vixie-dnsext-dns0x20). Owners share the sockets, and a question that hangs gives way to the next.
// Which server is asked, and again, is resolve.ts's.
import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { connect } from "node:net";
import type { Clock, Timer } from "../clock.ts";
import { createFairSlots } from "../fairness.ts";
import type { Owner } from "../fairness.ts";
import { createTurns, type Turns } from "../fairness/turns.ts";
import type { Log } from "../log.ts";
import { decodeReply, encodeQuery, MalformedReply, mixedCase } from "./message.ts";
import type { Question, Reply } from "./message.ts";
import { showServer } from "./servers.ts";
import type { DnsServerAddress } from "./servers.ts";

export type Exchange =
  | { kind: "reply"; reply: Reply }
  /** `final`: it is not to be asked again now, of any server. */
  | { kind: "failed"; why: string; final?: true };

export interface Transport {
  /**
   * Never throws. Answers within a few times `timeoutMs`, counted from when `owner` has a slot. `again`: the question
   * failed lately, so it waits apart from the owner's other questions.
   */
  ask(
    server: DnsServerAddress,
    question: Question,
    edns: boolean,
    owner: Owner,
    again?: boolean,
  ): Promise<Exchange>;
  /** Fails the queries in flight and refuses new ones. */
  stop(): void;
}

/** Questions in flight, each with a file descriptor; others wait their turn. */
const maxInFlight = 256;
/** A server that has the answer says so sooner. */
const patienceMs = 200;
/** Questions in flight for longer than that, on top. */
const maxHanging = 2048;
/** Questions that are sent in one turn of the event loop: each takes about a tenth of a millisecond of it. */
const sendsPerTurn = 16;
/** A long reply takes milliseconds to read. */
const readEveryMs = 8;
/** Datagrams that are not our reply, before a guessing attacker is taken for one. */
const maxStrays = 64;
/** After a reply in another case, which may be forged, the right one is waited for. */
const otherCaseMs = 250;
/** A server that was seen to lose the case of names is not asked to keep it for so long. */
const caseLostMs = 3_600_000;

const stopped: Exchange = { kind: "failed", why: "the resolver was stopped", final: true };
const givenUp: Exchange = {
  kind: "failed",
  why: "no answer yet, and too many other look-ups hang",
  final: true,
};

/** "other_case": what would be the reply has the name in another case than was asked for. */
type Heard = Exchange | { kind: "other_case" };
type Finish = (result: Heard) => void;

interface Query {
  server: DnsServerAddress;
  id: number;
  question: Question;
  edns: boolean;
  owner: Owner;
  /** The reply must have the name in the same case. */
  exact: boolean;
}

/** Ends an exchange from outside. Not an AbortSignal: its error and its event cost more than the question. */
interface End {
  over: boolean;
  /** What it ends now. */
  cut: (() => void) | null;
}

/** Opens a socket, asks, calls back once; answers how to close it. `arrived`: the reply is here and waits to be read. */
type Conversation = (query: Query, finish: Finish, arrived: () => void) => () => void;

export function createTransport(deps: { timeoutMs: number; clock: Clock; log: Log }): Transport {
  const { clock, log, timeoutMs } = deps;
  const slots = createFairSlots({ slots: maxInFlight, patienceMs, lingering: maxHanging, clock });
  const open = new Set<Finish>();
  const caseLostUntil = new Map<string, number>();
  const udp = overUdp(createTurns({ clock, pieces: sendsPerTurn, everyMs: 0 }));
  const tcp = overTcp(createTurns({ clock, pieces: 1, everyMs: readEveryMs }));
  let running = true;

  const converse = (talk: Conversation, query: Omit<Query, "id">, end: End): Promise<Heard> =>
    new Promise((resolve) => {
      if (!running) return resolve(stopped);
      if (end.over) return resolve(givenUp);
      let close = (): void => undefined;
      let otherCase: Timer | null = null;
      const finish: Finish = (result) => {
        if (result.kind === "other_case")
          return void (otherCase ??= clock.after(otherCaseMs, () => conclude(result)));
        conclude(result);
      };
      const conclude = (result: Heard): void => {
        if (!open.delete(finish)) return;
        timer.cancel();
        otherCase?.cancel();
        end.cut = null;
        close();
        resolve(result);
      };
      open.add(finish);
      end.cut = () => finish(givenUp);
      const timer = clock.after(timeoutMs, () =>
        finish({ kind: "failed", why: `no answer within ${timeoutMs} ms` }),
      );
      close = talk({ ...query, id: randomInt(0x10000) }, finish, () => timer.cancel());
      if (!open.has(finish)) close();
    });

  /** A first reply in another case may be forged; a second one, to another id and port, shows that the server is so. */
  const overUdpInCase = async (asked: Omit<Query, "id" | "exact">, end: End): Promise<Heard> => {
    const { server, question } = asked;
    const key = showServer(server);
    for (let tries = 0; tries < 2 && (caseLostUntil.get(key) ?? 0) <= clock.monotonic(); tries++) {
      const mixed = { ...question, name: mixedCase(question.name) };
      const heard = await converse(udp, { ...asked, question: mixed, exact: true }, end);
      if (heard.kind !== "other_case") return heard;
      if (tries === 0) continue;
      caseLostUntil.set(key, clock.monotonic() + caseLostMs);
      log.info(
        { server: key },
        "a DNS server does not preserve the case of the queried name; 0x20 is not used with it",
      );
    }
    return converse(udp, { ...asked, exact: false }, end);
  };

  const exchange = async (asked: Omit<Query, "id" | "exact">, end: End): Promise<Exchange> => {
    const first = await overUdpInCase(asked, end);
    if (first.kind === "other_case") return { kind: "failed", why: "an answer to another question" };
    if (first.kind === "failed" || !first.reply.truncated) return first;
    const whole = await converse(tcp, { ...asked, exact: false }, end);
    if (whole.kind === "other_case") return { kind: "failed", why: "an answer to another question" };
    return whole.kind === "reply" && whole.reply.truncated
      ? { kind: "failed", why: "the answer is cut short over TCP too" }
      : whole;
  };

  return {
    ask: (server, question, edns, owner, again = false) =>
      new Promise((resolve, reject) => {
        const end: End = { over: false, cut: null };
        const giveUp = (): void => {
          end.over = true;
          end.cut?.();
        };
        const begin = (leave: () => void): void =>
          void exchange({ server, question, edns, owner }, end).then(resolve, reject).finally(leave);
        slots.enter(owner, begin, { giveUp, again });
      }),
    stop() {
      running = false;
      for (const finish of open) finish(stopped);
    },
  };
}

/** Each question has a socket, and so a port, of its own. Hundreds that time out together are asked again by turns. */
const overUdp =
  (turns: Turns): Conversation =>
  (query, finish) => {
    const { server, id, question, edns, owner } = query;
    let socket: Socket | null = null;
    let strays = 0;
    let closed = false;
    turns(owner, () => {
      if (closed) return;
      socket = createSocket(server.family === 6 ? "udp6" : "udp4");
      socket.on("error", (error) => finish({ kind: "failed", why: error.message }));
      socket.on("message", (bytes) => {
        const result = understand(bytes, query);
        if (result) finish(result);
        else if (++strays > maxStrays)
          finish({ kind: "failed", why: "too many answers that were not to this question" });
      });
      // Without a callback a failed connect, such as without a route to an IPv6 server, is an 'error' event.
      socket.once("connect", () => {
        if (!closed) socket?.send(encodeQuery(id, question, edns));
      });
      socket.connect(server.port, server.address);
    });
    return () => {
      closed = true;
      socket?.close();
    };
  };

/** Replies over TCP are large: they are read one by one, owners by turns. */
const overTcp =
  (turns: Turns): Conversation =>
  (query, finish, arrived) => {
    const { server, id, question, edns, owner } = query;
    const socket = connect({ host: server.address, port: server.port });
    let held: Buffer = Buffer.alloc(0);
    let whole = false;
    let closed = false;
    const read = (bytes: Buffer): void => {
      if (closed) return;
      const result = understand(bytes, query);
      finish(result ?? { kind: "failed", why: "an answer to another question over TCP" });
    };
    socket.on("connect", () => {
      const bytes = encodeQuery(id, question, edns);
      socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]));
    });
    socket.on("data", (chunk) => {
      held = Buffer.concat([held, chunk]); // 65,537 bytes at most before the length is reached
      if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return;
      whole = true;
      arrived();
      socket.removeAllListeners("data").pause();
      const bytes = held.subarray(2, 2 + held.readUInt16BE(0));
      turns(owner, () => read(bytes));
    });
    socket.on("error", (error) => finish({ kind: "failed", why: `TCP: ${error.message}` }));
    socket.on("close", () => {
      if (!whole) finish({ kind: "failed", why: "TCP was closed before the answer" });
    });
    return () => {
      closed = true;
      socket.destroy();
    };
  };

function understand(bytes: Buffer, { id, question, exact }: Query): Heard | null {
  try {
    const reply = decodeReply(bytes, id, question, exact);
    if (reply === "other_case") return { kind: reply };
    return reply && { kind: "reply", reply };
  } catch (error) {
    if (error instanceof MalformedReply)
      return { kind: "failed", why: `an answer that cannot be read: ${error.message}` };
    throw error;
  }
}
