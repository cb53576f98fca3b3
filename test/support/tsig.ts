// Replies of a made-up primary server with signatures (RFC 8945 §5.3), made on node:crypto alone, apart from the product's code.
import { createHmac } from "node:crypto";

/** Of the key `publish`, hmac-sha256. */
export const secret = Buffer.from("0123456789abcdef0123456789abcdef");
export const wire = (text: string): Buffer =>
  Buffer.concat([
    ...text.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.alloc(1),
  ]);
export const u16 = (...values: number[]): Buffer =>
  Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));

interface Signing {
  /** Seconds from the clock that the request has. */
  skew?: number;
  secret?: Buffer;
  keyName?: string;
  error?: number;
  /** Octets of the MAC that are sent. */
  macLength?: number;
  originalId?: number;
}

/** The request without its signature, its MAC and time. */
function unsigned(request: Buffer): { message: Buffer; mac: Buffer; time: Buffer } {
  const at = request.lastIndexOf(wire("publish"));
  const data = request.subarray(at + 9 + 10 + wire("hmac-sha256").length);
  const message = Buffer.from(request.subarray(0, at));
  message.writeUInt16BE(0, 10);
  return { message, time: data.subarray(0, 6), mac: data.subarray(10, 10 + data.readUInt16BE(8)) };
}

/** `reply` with a signature as RFC 8945 §5.3 has it. */
export function signed(request: Buffer, reply: Buffer, signing: Signing = {}): Buffer {
  const { mac: requestMac, time } = unsigned(request);
  const {
    skew = 0,
    error = 0,
    keyName = "publish",
    macLength = 32,
    originalId = reply.readUInt16BE(0),
  } = signing;
  const seconds = Buffer.alloc(6);
  seconds.writeUIntBE(time.readUIntBE(0, 6) + skew, 0, 6);
  const variables = Buffer.concat([
    wire(keyName),
    u16(255, 0, 0),
    wire("hmac-sha256"),
    seconds,
    u16(300, error, 0),
  ]);
  const mac = createHmac("sha256", signing.secret ?? secret)
    .update(Buffer.concat([u16(requestMac.length), requestMac, reply, variables]))
    .digest()
    .subarray(0, macLength);
  const data = Buffer.concat([
    wire("hmac-sha256"),
    seconds,
    u16(300, mac.length),
    mac,
    u16(originalId, error, 0),
  ]);
  const whole = Buffer.concat([reply, wire(keyName), u16(250, 255, 0, 0, data.length), data]);
  whole.writeUInt16BE(whole.readUInt16BE(10) + 1, 10);
  return whole;
}

/** A reply to the request: its header and question, the flags given. */
export function replyTo(request: Buffer, flags: number): Buffer {
  const { message } = unsigned(request);
  const zoneEnd = message.indexOf(0, 12) + 5;
  const reply = Buffer.from(message.subarray(0, zoneEnd));
  reply.writeUInt16BE(flags, 2);
  reply.fill(0, 6, 12);
  return reply;
}
