// A mail program of the tests, as raw as a socket: it sends what it is told, byte for byte, and reads replies
// (RFC 5321 §4.2). It knows nothing of what a reply means, so a test sees exactly what a program would.
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";

export interface SmtpAnswer {
  code: number;
  /** The text of each line, without code and separator. */
  lines: string[];
  /** The whole reply as it came, its lines joined by LF. */
  text: string;
}

export class SmtpClient {
  #socket: Socket;
  /** Under TLS: what carries it. */
  readonly #tcp: Socket;
  #buffer = "";
  #lines: string[] = [];
  #answers: SmtpAnswer[] = [];
  #waiting: { resolve: (answer: SmtpAnswer) => void; reject: (error: Error) => void }[] = [];
  #closed = Promise.withResolvers<void>();

  constructor(socket: Socket, tcp: Socket = socket) {
    this.#socket = socket;
    this.#tcp = tcp;
    // Each write is a packet of its own.
    tcp.setNoDelay(true);
    this.#listen(socket);
  }

  get socket(): Socket {
    return this.#socket;
  }

  /** Writes as it is; no line end is added. */
  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The next reply. Rejects where the connection ends first. */
  answer(): Promise<SmtpAnswer> {
    const next = this.#answers.shift();
    if (next) return Promise.resolve(next);
    if (this.#socket.destroyed) return Promise.reject(new Error("the connection is closed"));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async answers(count: number): Promise<SmtpAnswer[]> {
    const found: SmtpAnswer[] = [];
    for (let i = 0; i < count; i++) found.push(await this.answer());
    return found;
  }

  /** Sends a command line and gives its reply. */
  command(line: string): Promise<SmtpAnswer> {
    this.send(`${line}\r\n`);
    return this.answer();
  }

  /** The same, as `code enhanced text` for one-line expectations. */
  async text(line: string): Promise<string> {
    return (await this.command(line)).text;
  }

  /** MAIL, RCPT and DATA with 250, 250 and 354; then the data, as it is. */
  async submit(from: string, to: string[], data: string | Uint8Array): Promise<SmtpAnswer> {
    for (const line of [`MAIL FROM:<${from}>`, ...to.map((one) => `RCPT TO:<${one}>`), "DATA"]) {
      const answer = await this.command(line);
      if (answer.code >= 400) return answer;
    }
    this.send(data);
    return this.answer();
  }

  /** The TLS handshake on this connection, after the 220 to STARTTLS; bytes before it may be given too. */
  async secure(
    options: { servername?: string; maxVersion?: "TLSv1.1" | "TLSv1.2"; ca?: string } = {},
  ): Promise<TLSSocket> {
    this.#socket.removeAllListeners();
    const tls = connectTls({
      socket: this.#socket,
      rejectUnauthorized: false,
      servername: "mail.test",
      ...options,
    });
    this.#socket = tls;
    this.#buffer = "";
    this.#listen(tls);
    await once(tls, "secureConnect");
    return tls;
  }

  /** STARTTLS and a new EHLO. */
  async startTls(): Promise<SmtpAnswer> {
    await this.command("EHLO client.test");
    await this.command("STARTTLS");
    await this.secure();
    return this.command("EHLO client.test");
  }

  /** True when nothing more came and the server closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Replies that came and were not asked for. */
  get unread(): SmtpAnswer[] {
    return this.#answers;
  }

  end(): void {
    this.#socket.end();
  }

  /** TCP RST. */
  reset(): void {
    this.#tcp.resetAndDestroy();
  }

  #listen(socket: Socket): void {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("close", () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("the connection is closed"));
      this.#closed.resolve();
    });
  }

  #read(chunk: Buffer): void {
    const lines = (this.#buffer + chunk.toString("latin1")).split("\r\n");
    this.#buffer = lines.pop() ?? "";
    for (const line of lines) {
      this.#lines.push(line);
      if (line[3] === "-") continue;
      const whole = this.#lines;
      this.#lines = [];
      this.#take({
        code: Number(line.slice(0, 3)),
        lines: whole.map((one) => one.slice(4)),
        text: whole.join("\n"),
      });
    }
  }

  #take(answer: SmtpAnswer): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting.resolve(answer);
    else this.#answers.push(answer);
  }
}

/** Connects; the banner is the first answer. */
export async function connectSmtp(to: {
  port: number;
  host?: string;
  /** From the first byte; with `ca`, the test looks whether it is verified. */
  tls?: boolean | { servername: string; ca: string };
  localAddress?: string;
}): Promise<SmtpClient> {
  const { port, host = "127.0.0.1", tls = false, localAddress } = to;
  const tcp = connectTcp({ port, host, ...(localAddress === undefined ? {} : { localAddress }) });
  await once(tcp, "connect");
  if (!tls) return new SmtpClient(tcp);
  const more = tls === true ? { servername: "mail.test" } : tls;
  const secure = connectTls({ socket: tcp, rejectUnauthorized: false, ...more });
  const client = new SmtpClient(secure, tcp);
  await once(secure, "secureConnect");
  return client;
}
