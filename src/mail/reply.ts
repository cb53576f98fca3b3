// Replies of an SMTP server (RFC 5321 §4.2). A reply decides whether mail was delivered, so what is
// not one is an error, never a guess: a code that is none, endless lines. LF alone ends a line as CRLF does: some servers
// send it, and nothing that we say to them has one that could come back in a reply.
// The text is a stranger's: it leaves here as one line of safe UTF-8. What it means is classify.ts.

export interface Reply {
  /** 200 to 599, of the last line. */
  code: number;
  /** X.Y.Z (RFC 2034), of the last line that has one, as sent; null where none has. */
  status: string | null;
  /** The text of each line, made safe, without the code. */
  lines: readonly string[];
  /** The lines as one, at most 2,000 characters; the status once. */
  text: string;
}

/** The other side does not speak SMTP: nothing that it says can be trusted any more. */
export class ReplySyntaxError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = "ReplySyntaxError";
  }
}

const maxLines = 100;
const maxReplyBytes = 65_536;
const maxTextLength = 2_000;
/** RFC 5321 §4.2: the code alone, or the code, a space or hyphen, and text. */
const replyLine = /^([2-5][0-9][0-9])(?:([ -])(.*))?$/s;
/** RFC 2034 §4; some receivers write `#5.1.0`. Class 2, 4 or 5, three digits at most (RFC 3463 §2). */
const leadingStatus = /^#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.])[ \t]*/;
/** Controls, line and paragraph separators, and format characters (bidi overrides among them). */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Makes a peer's bytes or text fit to be stored, shown and logged: valid UTF-8, no controls. */
export function safeText(text: string): string {
  return text.replace(unsafe, " ");
}

/** Cuts to at most `length` UTF-16 units without halving a character. */
function cut(text: string, length: number): string {
  return text.length <= length
    ? text
    : text
        .slice(0, length)
        .toWellFormed()
        .replace(/\ufffd$/, "");
}

/** Of a connection's short replies of one line so many are remembered: `250 2.1.0 Ok` comes with every message. */
const maxSeen = 20;
const maxSeenLength = 60;

/** Splits the bytes of one connection into replies. After an error it is of no more use. */
export class ReplyParser {
  #held: Buffer = Buffer.alloc(0);
  #lines: string[] = [];
  #bytes = 0;
  readonly #seen = new Map<string, Reply>();

  /**
   * Takes bytes as they come and gives the replies that they complete, in order. Throws ReplySyntaxError at the place
   * where they stop being replies: those before it have been given.
   */
  *push(chunk: Buffer): Generator<Reply, void> {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let start = 0;
    for (let lf = bytes.indexOf(10); lf >= 0; lf = bytes.indexOf(10, start)) {
      const reply = this.#takeLine(bytes.subarray(start, lf + 1));
      start = lf + 1;
      if (reply !== null) yield reply;
    }
    this.#held = Buffer.from(bytes.subarray(start));
    if (this.#bytes + this.#held.length > maxReplyBytes)
      throw new ReplySyntaxError("a reply of more than 64 KB");
  }

  /** Bytes of a reply that has begun and not ended are waiting. */
  get pending(): boolean {
    return this.#held.length > 0 || this.#lines.length > 0;
  }

  #takeLine(line: Buffer): Reply | null {
    this.#bytes += line.length;
    if (this.#bytes > maxReplyBytes) throw new ReplySyntaxError("a reply of more than 64 KB");
    const end = line.length - (line[line.length - 2] === 13 ? 2 : 1);
    const written = line.toString("utf8", 0, end);
    const known = this.#lines.length === 0 ? this.#seen.get(written) : undefined;
    if (known !== undefined) {
      this.#bytes = 0;
      return known;
    }
    const match = replyLine.exec(written);
    if (match?.[1] === undefined) {
      throw new ReplySyntaxError(`no SMTP reply: ${cut(safeText(line.toString("utf8", 0, 80)).trim(), 80)}`);
    }
    this.#lines.push(safeText(match[3] ?? "").trim());
    if (match[2] === "-") {
      if (this.#lines.length >= maxLines) throw new ReplySyntaxError("a reply of more than 100 lines");
      return null;
    }
    const reply = makeReply(Number(match[1]), this.#lines);
    if (this.#lines.length === 1 && written.length <= maxSeenLength) this.#remember(written, reply);
    this.#lines = [];
    this.#bytes = 0;
    return reply;
  }

  #remember(line: string, reply: Reply): void {
    if (this.#seen.size >= maxSeen) this.#seen.clear();
    this.#seen.set(line, reply);
  }
}

function makeReply(code: number, lines: string[]): Reply {
  let status: string | null = null;
  for (const line of lines) status = leadingStatus.exec(line)?.[1] ?? status;
  // A status that begins each line of a reply would cut its sentences in two: it stays in front only.
  const sentences = lines.map((line) =>
    line.replace(leadingStatus, (whole, own) => (own === status ? "" : whole)),
  );
  const text = sentences.filter((line) => line !== "").join(" ");
  return {
    code,
    status,
    lines,
    text: cut(status === null ? text : `${status} ${text}`.trim(), maxTextLength),
  };
}
