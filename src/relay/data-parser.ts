// smtp-server's parser, except for the data of a mail (mail-data.ts): the end of it and its stuffed dots (RFC 5321 §4.5.2) are found by
// native search, and a chunk is copied only where a dot is taken out or a line end falls between two of them. Upstream
// looks at each octet and puts the last four of every chunk in front of the next: a tenth of what a mail of 50 KB cost.
import type { SMTPServerDataStream } from "smtp-server";
import { SMTPStream } from "smtp-server/lib/smtp-stream.js";
import { MailData } from "./mail-data.ts";

type Done = (error?: Error | null) => void;

const cr = 0x0d;
const lf = 0x0a;
const dot = 0x2e;
const lineDot = Buffer.from("\n.");
/** What may go on as the end of the data or as a stuffed dot. */
const beginnings = ["\r\n.\r", "\r\n.", "\r\n", "\n.", "\n", "\r"].map((text) => Buffer.from(text));
const nothing: Buffer = Buffer.alloc(0);

export class DataParser extends SMTPStream {
  /** Holds back what is written to the peer until the function that it returns is called. */
  holdReplies: () => () => void = () => () => undefined;

  /** The end of the last chunk, where it is one of `beginnings`: else the next chunk begins within a line. */
  #held: Buffer = nothing;

  /** The replies to the commands of one chunk leave together (RFC 2920 §3.2). */
  override _write(chunk: Buffer, encoding: BufferEncoding, next: Done): void {
    const first = this._dataMode ? -1 : chunk.indexOf(lf);
    if (first < 0 || first === chunk.length - 1) return super._write(chunk, encoding, next);
    const release = this.holdReplies();
    super._write(chunk, encoding, (error) => {
      release();
      next(error);
    });
  }

  override startDataMode(maxBytes?: number | string | null): SMTPServerDataStream {
    this._dataMode = true;
    this._maxBytes = Number(maxBytes) || Infinity;
    this.dataBytes = 0;
    this._atDataStart = true;
    const data: unknown = new MailData();
    this._dataStream = data as SMTPServerDataStream; // as much of one as smtp-server uses
    return this._dataStream;
  }

  override _feedDataStream(chunk: Buffer, done: Done): void {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = nothing;
    const pieces: Buffer[] = [];
    let from = 0;
    if (this._atDataStart) {
      if (isBeginningOf(bytes, ".\r\n")) return this.#hold(bytes, done);
      if (bytes[0] === dot && bytes[1] === cr && bytes[2] === lf)
        return this._endDataMode(false, bytes.subarray(3), done);
      if (bytes[0] === dot && bytes[1] === dot) from = 1;
      this._atDataStart = false;
    }
    for (let at = bytes.indexOf(lineDot, from); at >= 0; at = bytes.indexOf(lineDot, at + 1)) {
      const after = at + 2;
      if (bytes[after] === dot) {
        pieces.push(bytes.subarray(from, after - 1));
        from = after;
      } else if (at > from && bytes[at - 1] === cr && bytes[after] === cr && bytes[after + 1] === lf) {
        pieces.push(bytes.subarray(from, at + 1));
        const last = joined(pieces);
        this._countDataBytes(last.length);
        return this._endDataMode(last, bytes.subarray(after + 2), done);
      }
    }
    const rest = bytes.subarray(from);
    const heldLength = beginnings.find((text) => endsWith(rest, text))?.length ?? 0;
    pieces.push(rest.subarray(0, rest.length - heldLength));
    // A copy: the view would keep all of the chunk.
    this.#held = heldLength === 0 ? nothing : Buffer.from(rest.subarray(rest.length - heldLength));
    this.#emit(joined(pieces), done);
  }

  #hold(bytes: Buffer, done: Done): void {
    this.#held = bytes;
    done();
  }

  /** Goes on when the mail's reader takes more, or has ended. */
  #emit(bytes: Buffer, done: Done): void {
    const stream = this._dataStream;
    this._countDataBytes(bytes.length);
    if (bytes.length === 0 || !stream || !stream.writable || stream.write(bytes) || stream.destroyed)
      return done();
    const goOn = (): void => {
      stream.removeListener("drain", goOn).removeListener("close", goOn);
      done();
    };
    stream.once("drain", goOn).once("close", goOn);
  }
}

function joined(pieces: Buffer[]): Buffer {
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}

function endsWith(bytes: Buffer, text: Buffer): boolean {
  const from = bytes.length - text.length;
  return from >= 0 && bytes.compare(text, 0, text.length, from) === 0;
}

/** Shorter than `text`, and so far the same. */
function isBeginningOf(bytes: Buffer, text: string): boolean {
  return bytes.length < text.length && text.startsWith(bytes.toString("latin1"));
}
