// The one file that reaches into smtp-server, with data-parser.ts. Its connection class is kept except for six methods:
// init (no 100 ms wait before the greeting; our limits), send (our status codes and words, AUTH only under TLS, one
// count of bad commands, the shutdownReply at shutdown), _createParser (data-parser.ts), _whenWritable (replies that are held
// back), _onCommand (base64 that is none) and _parseAddressCommand (path.ts: quoted local parts).
// _getEnhancedStatusCode needs no override: a context of `false` makes it silent, which send uses wherever a
// text brings its own X.Y.Z. A test compares the upstream text of everything that this relies on.
import type { Socket } from "node:net";
import { SMTPServer } from "smtp-server";
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server";
import { SMTPConnection } from "smtp-server/lib/smtp-connection.js";
import type { Clock } from "../clock.ts";
import { DataParser } from "./data-parser.ts";
import { readPath } from "./path.ts";
import type { PathCommand } from "./path.ts";
import { correctedReply } from "./replies.ts";
import { Progress } from "./progress.ts";
import type { ProgressRule } from "./progress.ts";
import type { SessionLimiter, Slot } from "./session-limiter.ts";

/** What all sessions of the relay share. */
export interface SessionContext {
  clock: Pick<Clock, "monotonic">;
  sessions: SessionLimiter;
  /** The time and number of commands within which a peer must log in or deliver a report. */
  progress: ProgressRule;
  /** The address of who speaks through a proxy; without it the socket's own. */
  peerOf?(socket: Socket): string;
  /** Name of the account as which the peer sends without a login; null: it needs one. */
  trustedAccount?(socket: Socket): string | null;
  /** Monotonic ms at which the connection was accepted, where that was before now: a TLS handshake came first. */
  acceptedAt?(socket: Socket): number;
  /** From stop() on: every next reply is the shutdownReply. */
  stopping: boolean;
  /** New sessions are refused: the greeting is 421. */
  closed?(): boolean;
  /** Counts the session; the text of the 421 where this peer has opened too many lately. */
  refusal?(ip: string): string | null;
  /** Called after a session has gone. */
  left(): void;
}

/** RFC 5321 §4.5.3.2.7: a server waits five minutes for the next command. */
const commandMs = 300_000;
/** The sweep that looks at it runs every five seconds: together at most 30 s. */
const handshakeMs = 25_000;
/** A message may take as long as it comes at this rate or faster. */
const minBytesPerMs = 1;
const maxMistakes = 20;
/** By upstream's codes: unknown, malformed and out-of-order commands, and failed AUTH. Refused addresses and mails are not among them. */
const mistakeCodes = new Set([500, 501, 502, 503, 504, 530, 535, 538, 555]);
const ownStatus = /^[245]\.\d{1,3}\.\d{1,3} /;
const accepted = /^2\.0\.0 (?:queued as |Taken)/;
const startsTls = "Ready to start TLS";
const shutdownReply = "4.3.2 Shutting down; try again later";

export class RelayServer extends SMTPServer {
  /** Every session whose socket is open, including those that are being closed. */
  readonly sessions = new Map<SMTPServerSession, RelayConnection>();
  readonly #shared: SessionContext;

  constructor(options: SMTPServerOptions, shared: SessionContext) {
    super(options);
    this.#shared = shared;
  }

  override connect(socket: Socket): void {
    // Closed between accept and here: its 'close' would never be seen again.
    if (socket.destroyed) return;
    const connection = new RelayConnection(this, socket, this.#shared);
    this.connections.add(connection);
    this.sessions.set(connection.session, connection);
    connection.on("error", (error: Error) => this._onError(error));
    connection.init();
  }

  override onClose(session: SMTPServerSession): void {
    this.sessions.get(session)?.leave();
    this.sessions.delete(session);
    this.#shared.left();
  }
}

export class RelayConnection extends SMTPConnection {
  readonly #shared: SessionContext;
  /** Name of the account as which the peer sends without a login; null: it needs one. */
  readonly trustedAccount: string | null;
  readonly #progress: Progress;
  #slot: Slot | null = null;
  #leave: (() => void) | null = null;
  #mistakes = 0;
  /** When the peer's turn began (monotonic ms): at accept, and with each reply. */
  #turnBegan: number;

  constructor(server: SMTPServer, socket: Socket, shared: SessionContext) {
    super(server, socket, { remoteAddress: shared.peerOf?.(socket) ?? socket.remoteAddress });
    this.#shared = shared;
    this.trustedAccount = shared.trustedAccount?.(socket) ?? null;
    this.#turnBegan = shared.clock.monotonic();
    this.#progress = new Progress(shared.progress, shared.acceptedAt?.(socket) ?? this.#turnBegan);
  }

  override init(): void {
    this._setListeners(() => {
      if (this.#shared.closed?.()) return this.#turnAway("4.3.2 In maintenance; try again later");
      const refusal = this.#shared.refusal?.(this.remoteAddress) ?? null;
      if (refusal !== null) return this.#turnAway(refusal);
      this.#slot = this.#shared.sessions.enter(this.remoteAddress, () => this.#evict());
      if (!this.#slot) return this.#turnAway("4.7.0 Too many connections; try again later");
      this.#leave = this.#slot.leave;
      if (this.trustedAccount !== null) this.#identify(null);
      this.connectionReady();
    });
  }

  /** Refuses the session with a 421; closes without one if too many refused connections are still open. */
  #turnAway(text: string): void {
    this.#leave = this.#shared.sessions.refuse();
    if (!this.#leave) return void this._socket.destroy();
    this.send(421, text);
  }

  /** After a successful login: counts the session for the account and removes the login deadline. */
  loggedIn(account: number): void {
    this.#identify(account);
  }

  #identify(account: number | null): void {
    this.#progress.reached();
    this.#slot?.identify(account);
  }

  /** A new session took the slot: ends at once, with a 421 if it can be sent. */
  #evict(): void {
    if (!this.#mayWrite()) return void this._socket.destroy();
    super.send(421, this.#shared.progress.crowded, false);
    this._socket.destroySoon();
  }

  #mayWrite(): boolean {
    return !this._upgrading && !this._socket.writableNeedDrain;
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    this.#turnBegan = this.#shared.clock.monotonic();
    // Upstream closes at ten unknown commands; the count of all kinds is ours.
    this._unrecognizedCommands = 0;
    if (Array.isArray(data)) return this.#sendLines(code, data, context);
    const text = data ?? "";
    // The handshake follows a 220 to STARTTLS in any case: the shutdownReply waits until it is over.
    if (this.#shared.stopping && !accepted.test(text) && code !== 421 && !text.startsWith(startsTls))
      return super.send(421, shutdownReply, false);
    if (mistakeCodes.has(code) && ++this.#mistakes >= maxMistakes)
      return super.send(421, "4.7.0 Too many bad commands", false);
    if (accepted.test(text)) this.#progressed();
    if (code !== 421 && this.#progress.replied())
      return super.send(421, this.#shared.progress.tooMany, false);
    if (text === "Error: Command line too long") {
      super.send(500, "5.5.2 Line too long", false);
      return this.close();
    }
    if (text === "Authentication aborted") return super.send(code, "5.0.0 Authentication cancelled", false);
    this.#reply(code, data, context);
    // A mail's reply waits for no command behind it, and that to STARTTLS leaves before the handshake takes the socket.
    if (accepted.test(text) || text.startsWith(startsTls)) this._socket.uncork();
    if (this.#shared.stopping && code !== 421 && accepted.test(text)) super.send(421, shutdownReply, false);
  }

  /** The reply to EHLO. */
  #sendLines(code: number, lines: string[], context: string | false | undefined): void {
    if (this.#progress.replied()) return super.send(421, this.#shared.progress.tooMany, false);
    this.#reply(code, this.secure ? lines : lines.filter((line) => !line.startsWith("AUTH ")), context);
  }

  override _createParser(): DataParser {
    const parser = new DataParser({ maxCommandLength: this._server.options.maxCommandLength });
    parser.holdReplies = () => {
      const socket = this._socket;
      socket.cork();
      return () => socket.uncork();
    };
    parser.oncommand = (command, callback) => this._onCommand(command, callback);
    parser.on("error", (error) => this.send(421, `Error: ${error.message}`));
    return parser;
  }

  /** Upstream waits for room in the socket before the next command: there is none as long as the replies are held back. */
  override _whenWritable(next: () => void): void {
    if (this._socket.writableNeedDrain) this._socket.uncork();
    super._whenWritable(next);
  }

  override _onCommand(command: Buffer, callback?: () => void): void {
    if (this._upgrading || !this.#hasBadToken(command.toString("latin1")))
      return super._onCommand(command, callback);
    this._nextHandler = false;
    this.send(501, "5.5.2 This is not base64, in which the parts of an AUTH exchange are sent");
    callback?.();
  }

  /** An answer within an AUTH exchange, or the one that AUTH brings along. */
  #hasBadToken(line: string): boolean {
    if (this._nextHandler) return !isBase64(line.trim());
    if (!this.secure || !this.hostNameAppearsAs || this.session.user) return false;
    const token = /^auth[ \t]+(?:plain|login)[ \t]+(\S+)[ \t]*$/i.exec(line)?.[1];
    return token !== undefined && token !== "=" && !isBase64(token);
  }

  override _parseAddressCommand(name: string, command: Buffer | string): PathCommand | false {
    const verb = name.toLowerCase() === "mail from" ? "MAIL FROM" : "RCPT TO";
    return readPath(verb, Buffer.from(command)) ?? false;
  }

  /** Releases the session's slot; the socket is closed. */
  leave(): void {
    this.#leave?.();
  }

  /** Closes the session of a peer that has used up its time. */
  expire(): void {
    const now = this.#shared.clock.monotonic();
    const waitedMs = now - this.#turnBegan;
    if (this._upgrading) {
      if (waitedMs >= handshakeMs || this.#progress.late(now)) this._socket.destroy();
      return;
    }
    const uploading = this.#uploadedBytes();
    if (this._closing || (this.busy && uploading === null)) return;
    if (this.#hasLostLogin()) this.#progressed();
    if (uploading === null && this.#progress.late(now))
      return super.send(421, this.#shared.progress.tooLate, false);
    if (waitedMs >= commandMs + (uploading ?? 0) / minBytesPerMs)
      super.send(421, "4.4.2 Nothing came for too long", false);
  }

  /** Its password was revoked, or its account suspended (handlers.ts). */
  #hasLostLogin(): boolean {
    return this.#progress.isReached && this.trustedAccount === null && !this.session.user;
  }

  /** What comes next has all of the time: a mail was taken, or a login is due again. Those who are logged in have it. */
  #progressed(): void {
    if (this.trustedAccount !== null || this.session.user) return;
    this.#progress.begin(this.#shared.clock.monotonic());
    this.#slot?.renew();
  }

  /** Sends the shutdownReply now if no reply is due; else it replaces the next reply. */
  dismiss(): void {
    if (!this.busy && !this._closing) super.send(421, shutdownReply, false);
  }

  /** Ends it whatever it does, except a mail that is being stored. */
  cut(): void {
    if (this.committing) return;
    if (this._upgrading) return void this._socket.destroy();
    if (!this._closing) super.send(421, shutdownReply, false);
    this._socket.destroySoon();
  }

  /** A reply or a handshake is due from us. */
  get busy(): boolean {
    return this._handlerPending || this._upgrading || Boolean(this._dataStream);
  }

  /** The data has come in full and its reply is due. */
  get committing(): boolean {
    return Boolean(this._dataStream) && this.#uploadedBytes() === null;
  }

  /** The 421 was sent; the socket waits for the peer to close. */
  get closing(): boolean {
    return this._closing;
  }

  #uploadedBytes(): number | null {
    return this._parser && this._parser._dataMode ? this._parser.dataBytes : null;
  }

  #reply(
    code: number,
    data: string | string[] | null | undefined,
    context: string | false | undefined,
  ): void {
    if (typeof data === "string" && ownStatus.test(data)) return super.send(code, data, false);
    // Upstream's own 421s carry 4.4.2, which is right for its timeout only; the others refuse the peer.
    if (code === 421 && typeof data === "string" && !data.startsWith("Timeout"))
      return super.send(code, `4.7.0 ${data}`, false);
    if (typeof data !== "string") return super.send(code, data, context);
    const reply = correctedReply(code, data, context);
    if (reply.enhanced === null) return super.send(reply.code, reply.text, context);
    super.send(reply.code, `${reply.enhanced} ${reply.text}`, false);
  }
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** RFC 4954 §4: what cannot be decoded is refused, and not as a wrong password. `*` cancels. */
function isBase64(answer: string): boolean {
  return answer === "*" || base64.test(answer);
}
