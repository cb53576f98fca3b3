// An unsolicited 100 Continue is skipped (RFC 9110 §15.2: any 1xx may come before the final answer). undici reads
// over every other 1xx, and takes 100 for a broken answer: the receiver has the event then and gets it again. So a
// connection's socket leaves the heads of 1xx out before undici reads them. An answer begins with the first octets
// behind a request, for requests are not pipelined; from its final status line on, every chunk passes as it came.
import type { Socket } from "node:net";

const begins = Buffer.from("HTTP/1.", "latin1");
/** Not 101, which ends HTTP on the connection. */
const status = / 1(?:0[02-9]|[1-9]\d)[ \r]/;
/** `HTTP/1.1 100` and the octet behind it. */
const longestStart = 13;
/** As undici and Node limit heads. */
const longestHead = 16_384;
const headEnd = Buffer.from("\r\n\r\n", "latin1");

/** Takes informational answers out of what the socket reads, from now on. */
export function skipContinues(socket: Socket): void {
  const { push, write } = socket;
  let held: Buffer | null = null;
  let atStart = true;
  const take = (chunk: Buffer): Buffer => {
    let bytes = held === null ? chunk : Buffer.concat([held, chunk]);
    held = null;
    for (;;) {
      const kind = startOf(bytes);
      if (kind === "final") {
        atStart = false;
        return bytes;
      }
      const end = kind === "continue" ? bytes.indexOf(headEnd) : -1;
      if (end < 0) break;
      bytes = bytes.subarray(end + headEnd.length);
    }
    if (bytes.length > longestHead) {
      atStart = false;
      return bytes;
    }
    held = bytes;
    return nothing;
  };
  // Each write is of a request, whose answer has not begun.
  socket.write = function (this: Socket, ...given: Parameters<Socket["write"]>) {
    atStart = true;
    return write.apply(this, given);
  } as Socket["write"];
  socket.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null && !atStart) return push.call(socket, chunk, encoding);
    if (chunk === null) {
      if (held !== null && held.length > 0) push.call(socket, held);
      held = null;
      return push.call(socket, null);
    }
    const rest = take(chunk);
    return rest.length === 0 ? true : push.call(socket, rest, encoding);
  };
}

const nothing: Buffer = Buffer.alloc(0);

/** `open`: what has come may become either. */
function startOf(bytes: Buffer): "final" | "continue" | "open" {
  const seen = Math.min(bytes.length, begins.length);
  if (bytes.compare(begins, 0, seen, 0, seen) !== 0) return "final";
  if (bytes.length < longestStart) return "open";
  return status.test(bytes.toString("latin1", begins.length + 1, longestStart)) ? "continue" : "final";
}
