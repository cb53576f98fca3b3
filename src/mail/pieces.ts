// Bytes in pieces with a turn of the loop between them, for work that costs more than its bytes: a chunk may have hundreds
// of parts, each with header fields to be rewritten, and would block the event loop.
import { setImmediate as turn } from "node:timers/promises";

const pieceBytes = 16_384;

/** Views of the chunks. */
export async function* piecesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      if (at > 0) await turn();
      yield chunk.subarray(at, at + pieceBytes);
    }
}
