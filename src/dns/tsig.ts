// Signatures of DNS messages by a shared key (TSIG, RFC 8945): signs a request, and says of a reply whether the key's
// holder made it in answer to that request, unchanged, and now. Shortened MACs (§5.2.2.1) are not taken.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { TsigKey } from "./tsig-key.ts";
import { hashes } from "./tsig-key.ts";
import { classes, types, uint16, wireName, wireRecord } from "./raw-message.ts";
import type { RawMessage, RawRecord } from "./raw-message.ts";

/** By how many seconds the clocks may differ (§10). */
const fudgeSeconds = 300;

/** Of §3; they stand in the record, not in the header. */
const faults: Record<number, string> = {
  16: "BADSIG: its secret differs from that of the key file",
  17: "BADKEY: it does not know the key, or not with this algorithm (Knot: or no acl allows it)",
  18: "BADTIME: its clock and this machine's differ by more than five minutes",
  22: "BADTRUNC: it takes no signature of this length",
};

interface Variables {
  seconds: number;
  fudge: number;
  error: number;
  other: Buffer;
}

/** The message with its signature as the last record, and the MAC, over which the reply's is made. */
export function sign(message: Buffer, key: TsigKey, seconds: number): { bytes: Buffer; mac: Buffer } {
  const variables = { seconds, fudge: fudgeSeconds, error: 0, other: Buffer.alloc(0) };
  const mac = macOf(key, [message, digested(key, variables)]);
  const data = Buffer.concat([
    wireName(key.algorithm),
    uint48(seconds),
    uint16(fudgeSeconds),
    uint16(mac.length),
    mac,
    message.subarray(0, 2),
    uint16(0),
    uint16(0),
  ]);
  const record = wireRecord({ name: key.name, type: types.TSIG, class: classes.ANY, data });
  const bytes = Buffer.concat([message, record]);
  bytes.writeUInt16BE(bytes.readUInt16BE(10) + 1, 10);
  return { bytes, mac };
}

export type Signature =
  | { kind: "good" }
  /** There is none. */
  | { kind: "none" }
  /** The server does not take ours. */
  | { kind: "refused"; why: string }
  /** The reply is not the server's, or not to this request. */
  | { kind: "bad"; why: string };

/** What the signature of a reply is worth. `bytes`: the reply as it came, `requestMac`: of what it answers. */
export function verify(
  bytes: Buffer,
  reply: RawMessage,
  key: TsigKey,
  requestMac: Buffer,
  seconds: number,
): Signature {
  const all = [...reply.answers, ...reply.authorities, ...reply.additionals];
  const last = reply.additionals.at(-1);
  if (!all.some(({ type }) => type === types.TSIG)) return { kind: "none" };
  if (last?.type !== types.TSIG || all.filter(({ type }) => type === types.TSIG).length > 1)
    return bad("its signature is not the last record"); // §5.1
  const read = readData(last);
  if (read === null) return bad("its signature cannot be read");
  const { mac, originalId, ...variables } = read;
  // Without a MAC where the server does not share the key (§5.3.2); it can only say no by that.
  if (mac.length === 0 && variables.error !== 0) return refused(variables.error);
  if (last.name !== key.name.toLowerCase() || last.inner !== key.algorithm)
    return bad("it is signed with another key");
  const message = Buffer.from(bytes.subarray(0, last.start));
  message.writeUInt16BE(originalId, 0);
  message.writeUInt16BE(reply.additionals.length - 1, 10);
  const expected = macOf(key, [
    uint16(requestMac.length),
    requestMac,
    message,
    digested(key, variables), // §4.3.3
  ]);
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected))
    return bad("its signature does not verify");
  if (variables.error !== 0) return refused(variables.error);
  if (Math.abs(seconds - variables.seconds) > Math.min(variables.fudge, fudgeSeconds))
    return bad("its signature is of another time");
  return { kind: "good" };
}

function readData(record: RawRecord): (Variables & { mac: Buffer; originalId: number }) | null {
  const data = record.data.subarray(record.afterInner);
  if (data.length < 16) return null;
  const macEnd = 10 + data.readUInt16BE(8);
  if (data.length < macEnd + 6) return null;
  const other = data.subarray(macEnd + 6);
  if (other.length !== data.readUInt16BE(macEnd + 4)) return null;
  return {
    seconds: data.readUIntBE(0, 6),
    fudge: data.readUInt16BE(6),
    mac: data.subarray(10, macEnd),
    originalId: data.readUInt16BE(macEnd),
    error: data.readUInt16BE(macEnd + 2),
    other,
  };
}

/** What is signed beside the message (§4.3.3). */
function digested(key: TsigKey, { seconds, fudge, error, other }: Variables): Buffer {
  return Buffer.concat([
    wireName(key.name),
    uint16(classes.ANY),
    Buffer.alloc(4), // TTL
    wireName(key.algorithm),
    uint48(seconds),
    uint16(fudge),
    uint16(error),
    uint16(other.length),
    other,
  ]);
}

function macOf(key: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(hashes[key.algorithm], key.secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

function uint48(value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(value, 0, 6);
  return bytes;
}

const refused = (error: number): Signature => {
  return { kind: "refused", why: faults[error] ?? `TSIG error ${error}` };
};
const bad = (why: string): Signature => ({ kind: "bad", why });
