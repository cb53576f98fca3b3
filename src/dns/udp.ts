// Questions over UDP. Against forgery (RFC 5452 §9): sockets at random ports, connected, so that the kernel drops what
// comes from elsewhere, and a random id. Each question has a socket of its own; only where many are under way at once, as
// at domains whose name servers are silent, are sockets shared, since to make one costs more than all else of a question.
// A shared one is drawn by chance, takes a few questions and no more, and ends with the last of them.
import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import type { Turns } from "../fairness/turns.ts";
import { understand, type Conversation, type Finish, type Heard, type Query } from "./conversation.ts";
import { encodeQuery } from "./message.ts";
import { showServer, type DnsServerAddress } from "./servers.ts";

export const udpLimits = {
  /** Sockets to a server that take questions, before they are shared. A forger has to find one of as many ports. */
  sockets: 64,
  /** Questions of one socket in its life. */
  questions: 32,
  /** Datagrams that answer no question, late answers among them, before a guessing attacker is taken for one. */
  strays: 64,
} as const;

interface Asked {
  query: Query;
  finish: Finish;
}

/** Hundreds that time out together are asked again by turns. */
export function overUdp(turns: Turns): Conversation {
  const servers = new Map<string, Sockets>();
  return (query, finish) => {
    const { server, owner } = query;
    let leave: (() => void) | null = null;
    let ended = false;
    turns(owner, () => {
      if (ended) return false;
      const key = showServer(server);
      let sockets = servers.get(key);
      if (!sockets) servers.set(key, (sockets = new Sockets(server)));
      return (leave = sockets.next().ask({ query, finish }));
    });
    return () => {
      ended = true;
      leave?.();
    };
  };
}

/** Those to one server that may take another question. */
class Sockets {
  readonly #server: DnsServerAddress;
  readonly #open: SharedSocket[] = [];

  constructor(server: DnsServerAddress) {
    this.#server = server;
  }

  next(): SharedSocket {
    const drawn =
      this.#open.length < udpLimits.sockets ? undefined : this.#open[randomInt(this.#open.length)];
    if (drawn) return drawn;
    const made = new SharedSocket(this.#server, () => {
      const at = this.#open.indexOf(made);
      if (at >= 0) this.#open.splice(at, 1);
    });
    this.#open.push(made);
    return made;
  }
}

class SharedSocket {
  readonly #socket: Socket;
  /** It takes no other question. */
  readonly #full: () => void;
  /** By id. */
  readonly #asked = new Map<number, Asked>();
  #connected = false;
  #questions = 0;
  #strays = 0;

  constructor(server: DnsServerAddress, full: () => void) {
    this.#full = full;
    this.#socket = createSocket(server.family === 6 ? "udp6" : "udp4");
    this.#socket.on("error", (error) => this.#fail(error.message));
    this.#socket.on("message", (bytes) => this.#hear(bytes));
    // Without a callback a failed connect, such as without a route to an IPv6 server, is an 'error' event.
    this.#socket.once("connect", () => {
      this.#connected = true;
      for (const [id, asked] of this.#asked) this.#send(id, asked);
    });
    this.#socket.connect(server.port, server.address);
  }

  /** Answers how to end it. */
  ask(asked: Asked): () => void {
    let id = randomInt(0x10000);
    while (this.#asked.has(id)) id = randomInt(0x10000);
    this.#asked.set(id, asked);
    this.#questions += 1;
    if (this.#questions >= udpLimits.questions) this.#full();
    if (this.#connected) this.#send(id, asked);
    return () => {
      if (this.#asked.get(id) !== asked) return; // ended before, and the id another question's
      this.#asked.delete(id);
      if (this.#asked.size > 0) return;
      this.#full();
      this.#socket.close();
    };
  }

  #send(id: number, { query: { question, edns }, finish }: Asked): void {
    this.#socket.send(encodeQuery(id, question, edns), (error: NodeJS.ErrnoException | null) => {
      if (!error) return;
      // The server's refusal of a question before (ICMP), which the system tells once, and to whoever sends next.
      if (error.code === "ECONNREFUSED") this.#fail(error.message);
      else finish({ kind: "failed", why: error.message });
    });
  }

  #hear(bytes: Buffer): void {
    const id = bytes.length < 2 ? -1 : bytes.readUInt16BE(0);
    const asked = this.#asked.get(id);
    const result: Heard | null = asked ? understand(bytes, id, asked.query) : null;
    if (asked && result) asked.finish(result);
    else if (++this.#strays > udpLimits.strays) this.#fail("too many answers that were not to this question");
  }

  /** Every question that is under way. */
  #fail(why: string): void {
    this.#full();
    for (const { finish } of this.#asked.values()) finish({ kind: "failed", why });
  }
}
