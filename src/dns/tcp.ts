// Questions over TCP (RFC 7766), where the reply was too long for UDP. Such replies are large: they are read one by one,
// owners by turns.
import { randomInt } from "node:crypto";
import { connect } from "node:net";
import type { Turns } from "../fairness/turns.ts";
import { understand, type Conversation } from "./conversation.ts";
import { encodeQuery } from "./message.ts";

export const overTcp =
  (turns: Turns): Conversation =>
  (query, finish, arrived) => {
    const { server, question, edns, owner } = query;
    const id = randomInt(0x10000);
    const socket = connect({ host: server.address, port: server.port });
    const chunks: Buffer[] = []; // 65,537 bytes at most before the length is reached
    let length = 0;
    let [whole, closed] = [false, false];
    const read = (bytes: Buffer): void => {
      const result = understand(bytes, id, query);
      finish(result ?? { kind: "failed", why: "an answer to another question over TCP" });
    };
    socket.on("connect", () => {
      const bytes = encodeQuery(id, question, edns);
      socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]));
    });
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      length += chunk.length;
      const end = length < 2 ? Infinity : 2 + lengthAt(chunks);
      if (length < end) return;
      whole = true;
      arrived();
      socket.removeAllListeners("data").pause();
      turns(owner, () => !closed && read(Buffer.concat(chunks).subarray(2, end)));
    });
    socket.on("error", (error) => finish({ kind: "failed", why: `TCP: ${error.message}` }));
    socket.on("close", () => {
      if (!whole) finish({ kind: "failed", why: "TCP was closed before the answer" });
    });
    return () => {
      closed = true;
      socket.destroy();
    };
  };

/** The first two octets, which a chunk may end between. */
function lengthAt(chunks: readonly Buffer[]): number {
  const [first = Buffer.alloc(0), second] = chunks;
  return first.length >= 2 ? first.readUInt16BE(0) : ((first[0] ?? 0) << 8) | (second?.[0] ?? 0);
}
