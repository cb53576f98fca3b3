// One TCP connection to a mail server: bytes out, replies in. Counts the replies that are due, so that
// an unsolicited one is never taken as the reply to the next command, and has a total deadline per reply that arriving
// bytes do not extend (RFC 5321 §4.5.3.2). Knows no SMTP verb. Over 300 lines: one socket has one
// state, and every way in which it can end changes it.
import { connect, isIP } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { SecureContext, TLSSocket } from "node:tls";
import type { Clock, Timer } from "../clock.ts";
import { ReplyParser, safeText } from "../mail/reply.ts";
import type { Reply } from "../mail/reply.ts";
import type { CutOff } from "./cut-off.ts";

/** Why a connection cannot be used any more. */
export interface ConnectionFailure {
  broken: "connect" | "tls" | "timeout" | "closed" | "protocol";
  /** For display: `connection refused`, `no reply within 60 s`. */
  why: string;
  /** Node's error code where the failure was an operating system's, e.g. `ECONNREFUSED`. */
  errno: string | null;
  /** What the server said unasked before it broke: a 421, or a refusal in the middle of the message. */
  unasked: Reply | null;
}

export type Answer = Reply | ConnectionFailure;

export function isBroken(answer: Answer | null): answer is ConnectionFailure {
  return answer !== null && "broken" in answer;
}

export interface DialTo {
  address: string;
  port: number;
  localAddress: string | null;
  timeoutMs: number;
  /** Ends the connection, but never between the final dot and its reply. */
  cutOff: CutOff;
}

export interface TlsTo {
  /** Name for SNI, which the certificate must have. */
  host: string;
  context: SecureContext;
  timeoutMs: number;
}

/** Up to here one copy costs less than a write of many pieces. */
const copiedBytes = 16 * 1024;
const mostPieces = 32;

export class Channel {
  readonly #clock: Clock;
  #socket: Socket;
  #parser = new ReplyParser();
  #ready: Reply[] = [];
  /** Replies that are due and have not arrived; the greeting is due from the start. */
  #due = 1;
  #broken: ConnectionFailure | null = null;
  #waiter: ((answer: Answer) => void) | null = null;
  #drainWaiter: ((broken: ConnectionFailure | null) => void) | null = null;
  readonly #cutOff: CutOff;
  /** The final dot was sent: only its reply says whether the message was delivered. */
  #committed = false;
  /** The next reply is the last in clear text; bytes after it are discarded. */
  #upgrading = false;
  /** Monotonic milliseconds; 0: nothing is being waited for. */
  #deadlineAt = 0;
  #deadlineMs = 0;
  #timer: Timer | null = null;
  #timerAt = 0;
  /** Called once when the connection breaks while no reply is awaited. */
  onIdleBreak: (() => void) | null = null;

  private constructor(clock: Clock, socket: Socket, cutOff: CutOff) {
    this.#clock = clock;
    this.#socket = socket;
    this.#cutOff = cutOff;
    cutOff.add(this.#onCut);
  }

  /** Opens a connection; a failure is a value. */
  static dial(clock: Clock, to: DialTo): Promise<Channel | ConnectionFailure> {
    const { address: host, port, localAddress, cutOff } = to;
    if (cutOff.cut) return Promise.resolve({ broken: "closed", why: stopping, errno: null, unasked: null });
    const socket = connect({ host, port, noDelay: true, ...(localAddress === null ? {} : { localAddress }) });
    const channel = new Channel(clock, socket, cutOff);
    return new Promise((resolve) => {
      channel.#drainWaiter = (broken) => resolve(broken ? { ...broken, broken: "connect" } : channel);
      socket.once("connect", () => channel.#settleDrain(null));
      channel.#listen(socket);
      channel.#setDeadline(to.timeoutMs);
    });
  }

  get broken(): ConnectionFailure | null {
    return this.#broken;
  }
  get localAddress(): string | null {
    return this.#socket.localAddress ?? null;
  }
  /** The TLS layer, once `upgrade` succeeded. */
  get tls(): TLSSocket | null {
    return "getProtocol" in this.#socket ? (this.#socket as TLSSocket) : null;
  }
  /** No reply is due and none is unread. */
  get quiet(): boolean {
    return this.#broken === null && this.#due === 0 && this.#ready.length === 0 && !this.#parser.pending;
  }

  /** Sends bytes to which `replies` answers are due. True: more can be written at once. */
  write(bytes: string | Buffer, replies: number): boolean {
    if (this.#broken) return true;
    this.#due += replies;
    return this.#socket.write(bytes);
  }

  /** Sends the end of a message, its final dot last. */
  commit(pieces: Buffer[]): void {
    this.#committed = true;
    this.writePieces(pieces, 1);
  }

  /** `write` for bytes in pieces: a few small ones are copied into one write, large ones go out as they are. */
  writePieces(pieces: Buffer[], replies: number): void {
    if (this.#broken) return;
    const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (size <= copiedBytes || pieces.length > mostPieces) {
      this.write(Buffer.concat(pieces, size), replies);
      return;
    }
    this.#due += replies;
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  /** The next answer, within `timeoutMs` in all. */
  next(timeoutMs: number): Promise<Answer> {
    const ready = this.#ready.shift();
    if (ready) return Promise.resolve(ready);
    if (this.#broken) return Promise.resolve(this.#broken);
    this.#setDeadline(timeoutMs);
    return new Promise((resolve) => (this.#waiter = resolve));
  }

  /** Resolves when the socket takes more; with why, if the connection broke or the server spoke out of turn. */
  drained(timeoutMs: number): Promise<ConnectionFailure | null> {
    if (this.#broken || !this.#socket.writableNeedDrain) return Promise.resolve(this.#broken);
    this.#setDeadline(timeoutMs);
    return new Promise((resolve) => (this.#drainWaiter = resolve));
  }

  /** Sends a command line and gives its answer. */
  ask(command: string, timeoutMs: number): Promise<Answer> {
    this.write(`${command}\r\n`, 1);
    return this.next(timeoutMs);
  }

  /** Sends STARTTLS. A 220 is then followed by `upgrade`, anything else by `stayClear`. */
  startTls(timeoutMs: number): Promise<Answer> {
    this.#upgrading = true;
    return this.ask("STARTTLS", timeoutMs);
  }
  stayClear(): void {
    this.#upgrading = false;
  }

  /** Negotiates TLS. What arrived in clear and was not asked for is forgotten (RFC 3207 §4.2, CVE-2011-0411). */
  upgrade(to: TlsTo): Promise<ConnectionFailure | null> {
    const plain = this.#socket;
    this.#ignore(plain);
    this.#upgrading = false;
    this.#parser = new ReplyParser();
    const secure = connectTls({
      socket: plain,
      host: to.host,
      ...(isIP(to.host) === 0 ? { servername: to.host } : {}),
      secureContext: to.context,
      // Judged by the caller: an opportunistic session takes any certificate and says what it was.
      rejectUnauthorized: false,
    });
    plain.on("error", () => undefined);
    this.#socket = secure;
    return new Promise((resolve) => {
      this.#drainWaiter = (broken) => resolve(broken ? { ...broken, broken: "tls" } : null);
      secure.once("secureConnect", () => this.#settleDrain(null));
      this.#listen(secure);
      this.#setDeadline(to.timeoutMs);
    });
  }

  /** Sends QUIT and closes; waits at most `graceMs` for the reply and ignores it (RFC 5321 §4.1.1.10). */
  quit(graceMs: number): Promise<void> {
    this.onIdleBreak = null;
    if (this.#broken) return Promise.resolve();
    this.#breakWith({ broken: "closed", why: "closed by us", errno: null, unasked: null }, false);
    return new Promise((resolve) => {
      const timer = this.#clock.after(graceMs, () => this.#socket.destroy());
      this.#socket.once("close", () => {
        timer.cancel();
        resolve();
      });
      this.#socket.resume();
      this.#socket.end("QUIT\r\n");
    });
  }

  /** Drops the connection now. */
  destroy(): void {
    this.onIdleBreak = null;
    this.#breakWith({ broken: "closed", why: "closed by us", errno: null, unasked: null }, true);
  }

  readonly #onData = (chunk: Buffer): void => this.#receive(chunk);
  readonly #onDrain = (): void => this.#settleDrain(null);
  readonly #onError = (error: NodeJS.ErrnoException): void =>
    this.#break("closed", spoken(error), error.code ?? null);
  readonly #onCut = (): void => {
    if (!this.#committed) this.#break("closed", stopping);
  };
  readonly #onEnd = (): void => this.#break("closed", "the server closed the connection");

  #listen(socket: Socket): void {
    socket.on("data", this.#onData).on("drain", this.#onDrain);
    socket.on("error", this.#onError).on("end", this.#onEnd).on("close", this.#onEnd);
  }
  #ignore(socket: Socket): void {
    socket.off("data", this.#onData).off("drain", this.#onDrain);
    socket.off("error", this.#onError).off("end", this.#onEnd).off("close", this.#onEnd);
  }

  #receive(chunk: Buffer): void {
    if (this.#broken) return;
    try {
      for (const reply of this.#parser.push(chunk)) {
        this.#take(reply);
        if (this.#upgrading) return;
      }
    } catch (error) {
      this.#break("protocol", error instanceof Error ? error.message : "no SMTP reply");
    }
  }

  #take(reply: Reply): void {
    if (this.#broken) return;
    if (this.#due === 0) return this.#unasked(reply);
    this.#due--;
    this.#committed = false;
    if (this.#waiter === null) {
      this.#ready.push(reply);
      return;
    }
    const waiter = this.#waiter;
    this.#waiter = null;
    this.#deadlineAt = 0;
    waiter(reply);
  }

  /** A 421 may come at any time (RFC 5321 §3.8), a refusal in mid-message is honoured; all else is a desync. */
  #unasked(reply: Reply): void {
    const kind = reply.code === 421 ? "closed" : "protocol";
    this.#breakWith(
      { broken: kind, why: `an unsolicited reply: ${reply.code}`, errno: null, unasked: reply },
      true,
    );
  }

  #break(broken: ConnectionFailure["broken"], why: string, errno: string | null = null): void {
    this.#breakWith({ broken, why, errno, unasked: null }, true);
  }

  #breakWith(broken: ConnectionFailure, destroy: boolean): void {
    if (this.#broken) return;
    this.#broken = broken;
    this.#cutOff.remove(this.#onCut);
    this.#deadlineAt = 0;
    this.#timer?.cancel();
    this.#timer = null;
    if (destroy) this.#socket.destroy();
    const waiter = this.#waiter;
    this.#waiter = null;
    const idle = this.onIdleBreak;
    this.onIdleBreak = null;
    waiter?.(broken);
    this.#settleDrain(broken);
    idle?.();
  }

  #settleDrain(broken: ConnectionFailure | null): void {
    const waiter = this.#drainWaiter;
    if (waiter === null) return;
    this.#drainWaiter = null;
    this.#deadlineAt = 0;
    waiter(broken);
  }

  /** One timer serves all deadlines: it is set again only if it would fire too late, or fired too early. */
  #setDeadline(timeoutMs: number): void {
    const at = this.#clock.monotonic() + timeoutMs;
    this.#deadlineAt = at;
    this.#deadlineMs = timeoutMs;
    if (this.#timer !== null && this.#timerAt <= at) return;
    this.#timer?.cancel();
    this.#arm(at, timeoutMs);
  }

  #arm(at: number, delayMs: number): void {
    this.#timerAt = at;
    this.#timer = this.#clock.after(delayMs, () => {
      this.#timer = null;
      if (this.#deadlineAt === 0) return;
      const leftMs = this.#deadlineAt - this.#clock.monotonic();
      if (leftMs > 0) this.#arm(this.#deadlineAt, leftMs);
      else this.#break("timeout", `nothing within ${this.#deadlineMs / 1000} s`);
    });
  }
}

const stopping = "this program is stopping";

/** An error in a line: OpenSSL's messages have several, with what the peer sent in them; its `reason` is enough. */
function spoken(error: NodeJS.ErrnoException & { reason?: unknown }): string {
  return safeText(typeof error.reason === "string" ? error.reason : error.message)
    .trim()
    .slice(0, 300);
}
