// A receiving mail server of the tests: scripted, on loopback, with every byte kept. What it answers is told by
// the recipient's local part (`tempfail@`, `permfail@`, …) or by the options; it can also stall, drop and lie
// at each stage. It is as strict as RFC 5321 allows (a nested MAIL is 503), so that a sloppy client is seen.
// Over 300 lines, because the whole script of a session is to be read in one place.
import { once } from "node:events";
import { createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";

/** Where a session can be made to stall (says nothing more) or to drop (closes instead of answering). */
export type Stage =
  | "banner"
  | "ehlo"
  | "helo"
  | "starttls"
  /** The TLS handshake after 220. */
  | "handshake"
  | "auth"
  | "mail"
  | "rcpt"
  | "data"
  /** Stops reading after the first bytes of the message. */
  | "block"
  | "dot"
  | "rset"
  | "quit";

export interface ReceivedMail {
  /** Between the angle brackets of MAIL FROM. */
  mailFrom: string;
  /** Everything after the bracket of MAIL, e.g. `SIZE=100 BODY=8BITMIME`. */
  mailParameters: string;
  /** The recipients that were taken. */
  rcptTo: string[];
  /** The message, dot-stuffing undone, otherwise as received. */
  data: Buffer;
  /** The message as it was on the wire, up to and with the final `.` line. */
  raw: Buffer;
  tls: boolean;
  /** Server name that the client asked for in its TLS handshake (SNI). */
  serverName: string | null;
  /** 1 for the first connection that was made. */
  connection: number;
  /** Address that the client dialled from. */
  from: string;
}

export interface ReceiverOptions {
  /** 127.0.0.x; 127.0.0.1 if not given. */
  address?: string;
  /** 0, the default: any free one. */
  port?: number;
  /** Sent as it is plus CRLF; default `220 receiver.test ESMTP`. */
  banner?: string;
  /** false: EHLO is 502 and only HELO works. */
  esmtp?: boolean;
  pipelining?: boolean;
  eightBit?: boolean;
  smtpUtf8?: boolean;
  /** Limit in bytes; null: no SIZE keyword; 0: `SIZE 0`, no limit. Default 26,214,400. */
  size?: number | null;
  /** Further EHLO keywords. */
  ehlo?: string[];
  /** Offers STARTTLS with this certificate. */
  tls?: { key: string; cert: string };
  /** Bytes sent in the same packet as the 220 to STARTTLS. */
  injectAfterStarttls?: string;
  /** Closes the connection in place of the TLS handshake, so that it fails. */
  breakHandshake?: boolean;
  /** Asks for AUTH PLAIN or LOGIN before MAIL. */
  auth?: { user: string; password: string; mechanisms?: string };
  /** Replies to RCPT by address; undefined: the local part decides. */
  onRcpt?: (address: string, connection: number) => string | undefined;
  /** Replies to the dot; undefined: the local part decides. */
  onData?: (mail: ReceivedMail) => string | undefined;
  /** Full replies (CRLF is added) in place of the usual ones, e.g. `{ data: "250 what" }`; "" sends nothing. */
  reply?: Partial<Record<Stage, string>>;
  /** Of all replies; CRLF if not given. */
  lineEnd?: "\n";
  /** DATA without a recipient is 354, as some servers do; default 503. */
  dataWithoutRecipient?: boolean;
  stall?: Stage;
  drop?: Stage;
  /** Resets the connection (RST) instead of answering. */
  reset?: Stage;
  /** What else holds for a connection, as long as it lives. */
  onConnection?: (connection: number) => ReceiverOptions;
  /** What else holds from a MAIL to the next; `mailFrom` as it stands between the brackets. */
  onTransaction?: (mailFrom: string, connection: number) => ReceiverOptions;
  /** Does not read after 354 until `readOn` is called. */
  slowData?: boolean;
}

export interface Receiver {
  port: number;
  address: string;
  /** Mails answered with 2xx, and those kept by `drop@` and a stalled or dropped dot. */
  mails: ReceivedMail[];
  /** Mails refused after the dot. */
  refused: ReceivedMail[];
  /** How many connections were made in all. */
  readonly connections: number;
  /** How many are open now. */
  readonly open: number;
  /** Every command line of every connection, in order, e.g. `MAIL FROM:<a@x.test> SIZE=10`. */
  commands: string[];
  /** Every byte received in clear on a connection (the first is 1). */
  bytes(connection: number): Buffer;
  /** Options may be changed while it runs; they hold from the next command on. */
  options: ReceiverOptions;
  /** Resolves once `count` mails are there; fails after `withinMs`. */
  waitForMails(count: number, withinMs?: number): Promise<ReceivedMail[]>;
  /** Resolves once `test` holds; looked at after each thing that happens here. */
  waitFor(test: () => boolean, withinMs?: number): Promise<void>;
  /** Answers the dots that `slow@` holds. */
  release(): void;
  /** Writes text to every open connection, whatever it is doing. */
  say(text: string): void;
  /** Goes on reading on every connection, or stops: for `slowData`. */
  readOn(yes: boolean): void;
  /** Ends (FIN) or resets every open connection. */
  hangUp(how?: "end" | "reset"): void;
  stop(): Promise<void>;
}

const dotLine = Buffer.from("\r\n.\r\n");

const byLocalPart: Record<string, string> = {
  tempfail: "451 4.3.0 try again later",
  permfail: "550 5.1.1 no such user",
  unknown: "550 5.1.1 no such user",
  full: "452 4.2.2 mailbox full",
};

/** Bytes that arrive; 25 MB in small pieces costs no more than twice its copying. */
class Growing {
  #store = Buffer.alloc(1024);
  #length = 0;
  get bytes(): Buffer {
    return this.#store.subarray(0, this.#length);
  }
  push(chunk: Buffer): void {
    if (this.#length + chunk.length > this.#store.length) {
      const larger = Buffer.alloc(2 * (this.#length + chunk.length));
      this.bytes.copy(larger);
      this.#store = larger;
    }
    chunk.copy(this.#store, this.#length);
    this.#length += chunk.length;
  }
  drop(count: number): void {
    this.#store.copyWithin(0, count, this.#length);
    this.#length -= count;
  }
}

class Session {
  readonly #server: ReceiverState;
  readonly #number: number;
  readonly #peer: string;
  #socket: Socket;
  #secure = false;
  #buffer = new Growing();
  /** How much of the buffer holds no end of the message. */
  #scanned = 0;
  #mode: "command" | "data" | "auth" | "deaf" = "command";
  #auth: { step: "plain" | "user" | "password"; user: string } = { step: "plain", user: "" };
  #authenticated = false;
  #mail: { from: string; parameters: string; to: string[] } | null = null;
  /** Of this connection, and of its last MAIL. */
  #connectionOptions: ReceiverOptions = {};
  #transactionOptions: ReceiverOptions = {};

  constructor(server: ReceiverState, socket: Socket, number: number) {
    this.#server = server;
    this.#socket = socket;
    this.#number = number;
    this.#peer = socket.remoteAddress ?? "";
    this.#connectionOptions = server.options.onConnection?.(number) ?? {};
    this.#listen(socket);
    this.#say("banner", this.#options.banner ?? "220 receiver.test ESMTP");
  }

  get #options(): ReceiverOptions {
    return { ...this.#server.options, ...this.#connectionOptions, ...this.#transactionOptions };
  }

  write(text: string): void {
    const { lineEnd = "\r\n" } = this.#options;
    if (!this.#socket.destroyed && this.#socket.writable)
      this.#socket.write(text.replaceAll("\r\n", lineEnd));
  }
  readOn(yes: boolean): void {
    if (yes) this.#socket.resume();
    else this.#socket.pause();
  }
  hangUp(how: "end" | "reset"): void {
    if (how === "end") this.#socket.end();
    else if (this.#socket instanceof TLSSocket) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  #listen(socket: Socket): void {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  #receive(chunk: Buffer): void {
    if (this.#mode === "deaf") return;
    if (!this.#secure) this.#server.keepBytes(this.#number, chunk);
    this.#buffer.push(chunk);
    while (this.#step());
    this.#server.changed();
  }

  /** Takes one command or one message from the buffer; false when there is no whole one. */
  #step(): boolean {
    if (this.#mode === "deaf") return false;
    if (this.#mode === "data") return this.#message();
    const end = this.#buffer.bytes.indexOf(0x0a);
    if (end < 0) return false;
    const line = this.#buffer.bytes.toString("utf8", 0, end).replace(/\r$/, "");
    this.#buffer.drop(end + 1);
    if (this.#mode === "auth") this.#credentials(line);
    else {
      this.#server.commands.push(line);
      this.#command(line);
    }
    return true;
  }

  /** Answers, or does what the options say of this stage instead. */
  #say(stage: Stage, text: string): void {
    const { stall, drop, reset, reply } = this.#options;
    if (stall === stage) this.#mode = "deaf";
    else if (reset === stage) {
      this.#mode = "deaf";
      this.hangUp("reset");
    } else if (drop === stage) {
      this.#mode = "deaf";
      this.#socket.end();
    } else {
      const scripted = reply?.[stage] ?? text;
      if (scripted !== "") this.write(`${scripted}\r\n`);
    }
  }

  #command(line: string): void {
    const verb = (/^[a-z]+/i.exec(line)?.[0] ?? "").toUpperCase();
    switch (verb) {
      case "EHLO":
        return this.#ehlo();
      case "HELO":
        this.#mail = null;
        return this.#say("helo", "250 receiver.test");
      case "STARTTLS":
        return this.#startTls();
      case "AUTH":
        return this.#authenticate(line);
      case "MAIL":
        return this.#from(line);
      case "RCPT":
        return this.#to(line);
      case "DATA":
        return this.#data();
      case "RSET":
        this.#mail = null;
        return this.#say("rset", "250 2.0.0 flushed");
      case "NOOP":
        return this.write("250 2.0.0 ok\r\n");
      case "QUIT":
        this.#say("quit", "221 2.0.0 bye");
        if (this.#options.stall !== "quit") this.#socket.end();
        return;
      default:
        this.write("500 5.5.2 what?\r\n");
    }
  }

  #ehlo(): void {
    const options = this.#options;
    this.#mail = null;
    if (options.esmtp === false) return this.#say("ehlo", "502 5.5.1 not here");
    const size = options.size === undefined ? 26_214_400 : options.size;
    const keywords = [
      "receiver.test",
      ...(options.pipelining === false ? [] : ["PIPELINING"]),
      ...(options.eightBit === false ? [] : ["8BITMIME"]),
      ...(options.smtpUtf8 === false ? [] : ["SMTPUTF8"]),
      ...(size === null ? [] : [`SIZE ${size}`]),
      ...(options.tls && !this.#secure ? ["STARTTLS"] : []),
      ...(options.auth ? [`AUTH ${options.auth.mechanisms ?? "PLAIN LOGIN"}`] : []),
      ...(options.ehlo ?? []),
      "ENHANCEDSTATUSCODES",
    ];
    this.#say(
      "ehlo",
      keywords.map((word, i) => `250${i === keywords.length - 1 ? " " : "-"}${word}`).join("\r\n"),
    );
  }

  #startTls(): void {
    const options = this.#options;
    if (!options.tls || this.#secure) return this.#say("starttls", "503 5.5.1 no TLS now");
    const scripted = options.reply?.starttls;
    if (scripted !== undefined || options.stall === "starttls" || options.drop === "starttls")
      return this.#say("starttls", "");
    this.write(`220 2.0.0 go ahead\r\n${options.injectAfterStarttls ?? ""}`);
    this.#buffer = new Growing();
    if (options.stall === "handshake") {
      this.#mode = "deaf";
      return;
    }
    if (options.breakHandshake) {
      this.#mode = "deaf";
      this.#socket.once("data", () => this.#socket.end("no TLS here after all\r\n"));
      return;
    }
    this.#socket.removeAllListeners("data");
    this.#mail = null;
    this.#secure = true;
    const secureContext = createSecureContext(options.tls);
    this.#socket = new TLSSocket(this.#socket, { isServer: true, secureContext });
    this.#listen(this.#socket);
  }

  #authenticate(line: string): void {
    const [, mechanism, initial] = line.split(" ");
    if (!this.#options.auth || this.#mail) return this.write("503 5.5.1 not now\r\n");
    if (mechanism?.toUpperCase() === "PLAIN") {
      this.#auth = { step: "plain", user: "" };
      if (initial !== undefined) return this.#credentials(initial);
    } else this.#auth = { step: "user", user: "" };
    this.#mode = "auth";
    this.write(mechanism?.toUpperCase() === "PLAIN" ? "334 \r\n" : "334 VXNlcm5hbWU6\r\n");
  }

  #credentials(line: string): void {
    const text = Buffer.from(line, "base64").toString("utf8");
    if (this.#auth.step === "user") {
      this.#auth = { step: "password", user: text };
      return this.write("334 UGFzc3dvcmQ6\r\n");
    }
    const [, plainUser, plainPassword] = text.split("\0");
    const user = this.#auth.step === "plain" ? plainUser : this.#auth.user;
    const password = this.#auth.step === "plain" ? plainPassword : text;
    this.#mode = "command";
    const { auth } = this.#options;
    this.#authenticated = user === auth?.user && password === auth?.password;
    this.#say("auth", this.#authenticated ? "235 2.7.0 welcome" : "535 5.7.8 who are you?");
  }

  #from(line: string): void {
    const parts = /^MAIL FROM:<([^>]*)>(?: (.*))?$/i.exec(line);
    this.#transactionOptions = this.#server.options.onTransaction?.(parts?.[1] ?? "", this.#number) ?? {};
    const options = this.#options;
    if (options.auth && !this.#authenticated) return this.write("530 5.7.0 authenticate first\r\n");
    if (this.#mail) return this.write("503 5.5.1 nested MAIL\r\n");
    if (!parts) return this.write("501 5.5.4 syntax\r\n");
    const scripted = options.reply?.mail;
    if (scripted === undefined || scripted.startsWith("2"))
      this.#mail = { from: parts[1] ?? "", parameters: parts[2] ?? "", to: [] };
    this.#say("mail", "250 2.1.0 ok");
  }

  #to(line: string): void {
    const address = /^RCPT TO:<(.*)>(?: .*)?$/i.exec(line)?.[1];
    if (!this.#mail) return this.write("503 5.5.1 MAIL first\r\n");
    if (address === undefined) return this.write("501 5.5.4 syntax\r\n");
    const { onRcpt, reply } = this.#options;
    const answer =
      reply?.rcpt ?? onRcpt?.(address, this.#number) ?? byLocalPart[localPart(address)] ?? "250 2.1.5 ok";
    if (answer.startsWith("2")) this.#mail.to.push(address);
    this.#say("rcpt", answer);
  }

  #data(): void {
    const options = this.#options;
    if (!this.#mail) return this.write("503 5.5.1 MAIL first\r\n");
    if (this.#mail.to.length === 0 && !options.dataWithoutRecipient)
      return this.write("503 5.5.1 no valid recipients\r\n");
    const scripted = options.reply?.data;
    if (scripted === undefined || scripted.startsWith("3")) this.#mode = "data";
    this.#say("data", "354 end with a dot");
    if (options.stall === "block") this.#mode = "deaf";
    if (options.stall === "block" || options.slowData) this.#socket.pause();
  }

  #message(): boolean {
    const { bytes } = this.#buffer;
    const lone = bytes.subarray(0, 3).equals(dotLine.subarray(2));
    const found = lone ? -2 : bytes.indexOf(dotLine, this.#scanned);
    this.#scanned = found === -1 ? Math.max(0, bytes.length - 4) : 0;
    if (found === -1) return false;
    const end = found + dotLine.length;
    const raw = Buffer.from(bytes.subarray(0, end));
    this.#buffer.drop(end);
    this.#mode = "command";
    const { from, parameters, to } = this.#mail ?? { from: "", parameters: "", to: [] };
    this.#mail = null;
    const mail: ReceivedMail = {
      mailFrom: from,
      mailParameters: parameters,
      rcptTo: to,
      data: unstuffed(raw.subarray(0, -3)),
      raw,
      tls: this.#secure,
      serverName: this.#socket instanceof TLSSocket ? this.#socket.servername || null : null,
      connection: this.#number,
      from: this.#peer,
    };
    this.#answerDot(mail);
    return true;
  }

  #answerDot(mail: ReceivedMail): void {
    const options = this.#options;
    const locals = mail.rcptTo.map(localPart);
    const answer =
      options.reply?.dot ??
      options.onData?.(mail) ??
      (mail.rcptTo.length === 0 ? "554 5.5.1 no valid recipients" : undefined) ??
      (locals.includes("dotfail") ? "554 5.7.1 refused after the dot" : "250 2.0.0 taken");
    const unanswered =
      locals.includes("drop") || [options.stall, options.drop, options.reset].includes("dot");
    if (answer.startsWith("2") || unanswered) this.#server.mails.push(mail);
    else this.#server.refused.push(mail);
    if (locals.includes("drop")) {
      this.#mode = "deaf";
      this.#socket.end();
    } else if (locals.includes("slow")) this.#server.held.push(() => this.#say("dot", answer));
    else this.#say("dot", answer);
  }
}

/** What the sessions of one receiver share. */
interface ReceiverState {
  options: ReceiverOptions;
  mails: ReceivedMail[];
  refused: ReceivedMail[];
  commands: string[];
  held: (() => void)[];
  keepBytes(connection: number, chunk: Buffer): void;
  changed(): void;
}

const localPart = (address: string): string => address.slice(0, address.lastIndexOf("@")).toLowerCase();

/** RFC 5321 §4.5.2: the first dot of a line that begins with one goes away. */
function unstuffed(raw: Buffer): Buffer {
  const parts: Buffer[] = [];
  let from = raw[0] === 0x2e ? 1 : 0;
  for (let at = raw.indexOf("\r\n."); at >= 0; at = raw.indexOf("\r\n.", at + 2)) {
    parts.push(raw.subarray(from, at + 2));
    from = at + 3;
  }
  return Buffer.concat([...parts, raw.subarray(from)]);
}

/** Starts a receiver; the test stops it. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const sessions = new Map<Socket, Session>();
  const waiting = new Set<() => void>();
  const bytes: Growing[] = [];
  let connections = 0;
  const state: ReceiverState = {
    options,
    mails: [],
    refused: [],
    commands: [],
    held: [],
    keepBytes: (connection, chunk) => (bytes[connection - 1] ??= new Growing()).push(chunk),
    changed: () => {
      for (const look of waiting) look();
    },
  };
  const server: Server = createServer({ noDelay: true }, (socket) => {
    connections++;
    sessions.set(socket, new Session(state, socket, connections));
    socket.once("close", () => {
      sessions.delete(socket);
      state.changed();
    });
    state.changed();
  });
  server.listen(options.port ?? 0, options.address ?? "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no address");

  const waitFor = (test: () => boolean, withinMs = 120_000): Promise<void> =>
    new Promise((resolve, reject) => {
      const finish = (end: () => void): void => {
        waiting.delete(look);
        clearTimeout(timer);
        end();
      };
      const look = (): void => void (test() && finish(resolve));
      const timer = setTimeout(
        () =>
          finish(() =>
            reject(new Error(`the receiver waited ${withinMs} ms in vain for ${test.toString()}`)),
          ),
        withinMs,
      );
      waiting.add(look);
      look();
    });

  return {
    port: bound.port,
    address: bound.address,
    mails: state.mails,
    refused: state.refused,
    commands: state.commands,
    options,
    bytes: (connection) => bytes[connection - 1]?.bytes ?? Buffer.alloc(0),
    get connections() {
      return connections;
    },
    get open() {
      return sessions.size;
    },
    waitFor,
    waitForMails: async (count, withinMs) => {
      await waitFor(() => state.mails.length >= count, withinMs);
      return state.mails;
    },
    release: () => {
      for (const answer of state.held.splice(0)) answer();
    },
    say: (text) => {
      for (const session of sessions.values()) session.write(text);
    },
    readOn: (yes) => {
      for (const session of sessions.values()) session.readOn(yes);
    },
    hangUp: (how = "end") => {
      for (const session of sessions.values()) session.hangUp(how);
    },
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sessions.keys()) socket.destroy();
      await closed;
    },
  };
}
