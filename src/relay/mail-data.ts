// The data of one mail on its way from the parser to its reader: what smtp-server's own PassThrough is for, at a fifth of
// its cost a mail. The parser writes and ends it, one reader takes chunk by chunk. smtp-server looks at readable,
// readableFlowing, readableEnded, writable, writableEnded and destroyed, and listens for drain, end and close.
import { EventEmitter } from "node:events";
import type { SMTPServerDataStream } from "smtp-server";
import { SmtpReply } from "./replies.ts";

/** Bytes that wait for the reader before the parser is paused. */
const highWaterMark = 65_536;

interface Waiting {
  resolve(chunk: Buffer | null): void;
  reject(error: Error): void;
}

export class MailData extends EventEmitter {
  /** Kept up to date by the parser: bytes so far, and whether that is more than a mail may have. */
  byteLength = 0;
  sizeExceeded = false;
  destroyed = false;
  writableEnded = false;
  readableEnded = false;
  /** true: what comes is discarded. */
  readableFlowing: true | null = null;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #full = false;
  #waiting: Waiting | null = null;

  get writable(): boolean {
    return !this.writableEnded && !this.destroyed;
  }

  get readable(): boolean {
    return !this.readableEnded && !this.destroyed;
  }

  /** false: `drain` follows when there is room again. */
  write(chunk: Buffer): boolean {
    if (this.readableFlowing) return true;
    const waiting = this.#waiting;
    if (waiting) {
      this.#waiting = null;
      waiting.resolve(chunk);
      return true;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#full = this.#bytes >= highWaterMark;
    return !this.#full;
  }

  end(chunk?: Buffer): void {
    if (chunk) this.write(chunk);
    this.writableEnded = true;
    if (this.#waiting || this.readableFlowing) this.#finish();
  }

  /** The client went away before the end: what waits is dropped, and the reader gets 451. */
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#chunks.length = 0;
    this.#waiting?.reject(cutOff());
    this.#waiting = null;
    process.nextTick(() => this.emit("close"));
  }

  /** The next bytes, null after the last; the caller waits for them before it asks again. Throws SmtpReply 451. */
  take(): Promise<Buffer | null> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      this.#bytes -= chunk.length;
      this.#makeRoom();
      return Promise.resolve(chunk);
    }
    if (this.destroyed) return Promise.reject(cutOff());
    if (this.writableEnded) {
      this.#finish();
      return Promise.resolve(null);
    }
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  /** Discards what has come and what will come. */
  resume(): void {
    this.readableFlowing = true;
    this.#chunks.length = 0;
    this.#bytes = 0;
    this.#makeRoom();
    if (this.writableEnded) this.#finish();
  }

  #makeRoom(): void {
    if (!this.#full || this.#bytes >= highWaterMark) return;
    this.#full = false;
    this.emit("drain");
  }

  #finish(): void {
    if (!this.readable) return;
    this.readableEnded = true;
    this.#waiting?.resolve(null);
    this.#waiting = null;
    process.nextTick(() => this.emit("end"));
  }
}

/** What smtp-server hands to onData: DataParser made it. */
export function mailDataOf(stream: SMTPServerDataStream): MailData {
  const data: unknown = stream;
  if (!(data instanceof MailData)) throw new Error("the data of a mail comes from DataParser");
  return data;
}

function cutOff(): SmtpReply {
  return new SmtpReply(451, "4.4.2", "The connection ended before the data did");
}
