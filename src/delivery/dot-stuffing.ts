// Dot-stuffing (RFC 5321 §4.5.2) over chunks that may be cut anywhere. A line that begins with a dot gets
// a second one; the last line is ended before the final dot. A dot after a bare LF is stuffed too: there is none in a
// stored message, but if there were, a lenient receiver must not see an end of data in it.

const lf = 0x0a;
const cr = 0x0d;
const dot = 0x2e;
const dotAfterLf = Buffer.from("\n.");
const oneDot = Buffer.from(".");
const endAfterLine = Buffer.from(".\r\n");
const endInLine = Buffer.from("\r\n.\r\n");

export interface Stuffer {
  /** Appends the chunk as it goes over the wire: in pieces, most often the chunk itself. */
  push(chunk: Buffer, into: Buffer[]): void;
  /** What ends the message: the dot on a line of its own. */
  end(): Buffer;
}

export function createStuffer(): Stuffer {
  // The last two bytes that went by; a message begins as after a line.
  let beforeLast = cr;
  let last = lf;
  return {
    push(chunk, into) {
      if (chunk.length === 0) return;
      let from = 0;
      if (last === lf && chunk[0] === dot) into.push(oneDot);
      for (let at = chunk.indexOf(dotAfterLf); at >= 0; at = chunk.indexOf(dotAfterLf, at + 1)) {
        into.push(chunk.subarray(from, at + 1), oneDot);
        from = at + 1;
      }
      into.push(from === 0 ? chunk : chunk.subarray(from));
      beforeLast = chunk.at(-2) ?? last;
      last = chunk.at(-1) ?? last;
    },
    end: () => (beforeLast === cr && last === lf ? endAfterLine : endInLine),
  };
}
