// DNS messages (RFC 1035 §4), replies read by dns2's codec: one question a query, with EDNS0
// (RFC 6891) and the AD bit set, which asks for AD in the reply (RFC 6840 §5.7). A reply is hostile until it is
// shown to be ours: id, question and shape. Reads are counted, so that names that point from pointer to pointer
// cost no more than an honest 64 KB message.
import { randomInt } from "node:crypto";
import { Packet } from "dns2";
import type { Reader, Resource } from "dns2";

export const typeCodes = { A: 1, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, TLSA: 52 } as const;
export type QuestionType = Exclude<keyof typeof typeCodes, "SOA">;

export interface Question {
  /** Without the final dot; in the case in which it is asked. */
  name: string;
  type: QuestionType;
}

export interface WireRecord {
  name: string;
  type: number;
  ttlSeconds: number;
  /** Address, target name (lower case, no final dot), joined text, or of a TLSA its data in hexadecimal. */
  value: string;
  /** Of an MX; else 0. */
  preference: number;
}

export interface Reply {
  rcode: number;
  truncated: boolean;
  authenticated: boolean;
  /** Records of the answer section; empty where `truncated`. */
  answers: WireRecord[];
  /** How long "no such data" may be cached (RFC 2308 §5): from the SOA; null where the reply had none. */
  negativeTtlSeconds: number | null;
  /** Name servers instead of an answer: the server does not resolve for us. */
  referral: boolean;
}

/** The reply has our id and cannot be read. */
export class MalformedReply extends Error {}

/** Answer records of a reply that are read, so that a reply of 64 KB costs little more than an ordinary one. */
export const maxRecords = 128;
const udpPayloadBytes = 1232; // what passes everywhere without fragments (DNS flag day 2020)

/** An OPT record (RFC 6891 §6.1.2): the root's name, its type, our size, no flags, no options. */
const optRecord = Buffer.from([0, 0, 41, udpPayloadBytes >> 8, udpPayloadBytes & 0xff, 0, 0, 0, 0, 0, 0]);

/**
 * Written here, as attempts at domains that hang ask thousands: dns2 writes bit by bit. `question.name` is one that
 * queryableName takes.
 */
export function encodeQuery(id: number, question: Question, edns: boolean): Buffer {
  const { name, type } = question;
  const nameEnd = 12 + name.length + 2;
  const bytes = Buffer.alloc(nameEnd + 4 + (edns ? optRecord.length : 0));
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt16BE(0x0120, 2); // RD, AD
  bytes[5] = 1;
  bytes[11] = edns ? 1 : 0;
  bytes.write(name, 13, "latin1");
  // Each dot, and the octet before the name, becomes the length of the label behind it.
  for (let at = 12, labelEnd = name.indexOf("."); ; labelEnd = name.indexOf(".", at - 12)) {
    const end = labelEnd < 0 ? name.length : labelEnd;
    bytes[at] = end - (at - 12);
    at = 13 + end;
    if (labelEnd < 0) break;
  }
  bytes.writeUInt16BE(typeCodes[type], nameEnd);
  bytes[nameEnd + 3] = Packet.CLASS.IN;
  if (edns) optRecord.copy(bytes, nameEnd + 4);
  return bytes;
}

/**
 * The reply in `bytes`, null where it answers something else than this query, "other_case" where it has the name in
 * another case than the query had and `exact` asks for the same. Throws MalformedReply.
 */
export function decodeReply(
  bytes: Buffer,
  id: number,
  question: Question,
  exact = false,
): Reply | "other_case" | null {
  if (bytes.length < Packet.HEADER_SIZE || bytes.readUInt16BE(0) !== id) return null;
  try {
    return readReply(new CountingReader(bytes), question, exact);
  } catch (error) {
    throw new MalformedReply(error instanceof Error ? error.message : String(error));
  }
}

function readReply(reader: CountingReader, question: Question, exact: boolean): Reply | "other_case" | null {
  const header = Packet.Header.parse(reader);
  const adBit = (reader.buffer.readUInt8(3) & 0x20) !== 0; // dns2 reads it, and its types do not say so
  if (header.qr !== 1 || header.opcode !== 0 || header.qdcount > 1) return null;
  const reply: Reply = {
    rcode: header.rcode,
    truncated: header.tc === 1,
    authenticated: adBit,
    answers: [],
    negativeTtlSeconds: null,
    referral: false,
  };
  if (header.qdcount === 0) {
    // Some servers that cannot read a query send back a bare header; it may only say that it failed.
    return header.rcode === Packet.RCODE.NOERROR || header.rcode === Packet.RCODE.NXDOMAIN ? null : reply;
  }
  const echoed = Packet.Question.parse(reader);
  if (
    plainName(echoed.name) !== plainName(question.name) ||
    echoed.type !== typeCodes[question.type] ||
    echoed.class !== Packet.CLASS.IN
  )
    return null;
  if (exact && echoed.name !== question.name) return "other_case";
  if (reply.truncated) return reply;

  let name = plainName(question.name);
  for (let i = 0; i < Math.min(header.ancount, maxRecords); i++) {
    const record = wireRecord(Packet.Resource.parse(reader));
    if (record.name === name)
      record.name = name; // one string for all, since answers are kept
    else name = record.name;
    reply.answers.push(record);
  }
  const answered = reply.answers.some((record) => record.type === typeCodes[question.type]);
  if (answered) return reply;
  if (header.ancount > maxRecords) throw new RangeError(`more than ${maxRecords} records of another type`);
  readAuthority(reader, Math.min(header.nscount, maxRecords), reply);
  return reply;
}

/** What a negative answer is worth. */
function readAuthority(reader: CountingReader, count: number, reply: Reply): void {
  let nameServers = false;
  for (let i = 0; i < count; i++) {
    const record = Packet.Resource.parse(reader);
    if (record.type === Packet.TYPE.NS) nameServers = true;
    if (record.type === Packet.TYPE.SOA) reply.negativeTtlSeconds = Math.min(record.ttl, record.minimum ?? 0);
  }
  reply.referral = nameServers && reply.negativeTtlSeconds === null && reply.answers.length === 0;
}

/** Of a type that is never asked for, or another class, without its value. */
function wireRecord(record: Resource): WireRecord {
  const type = record.class === Packet.CLASS.IN ? record.type : 0;
  const base = { name: plainName(record.name), type, ttlSeconds: record.ttl, preference: 0 };
  switch (type) {
    case typeCodes.A:
    case typeCodes.AAAA:
      return { ...base, value: record.address ?? "" };
    case typeCodes.CNAME:
    case typeCodes.PTR:
      return { ...base, value: plainName(record.domain ?? "") };
    case typeCodes.MX:
      return { ...base, value: plainName(record.exchange ?? ""), preference: record.priority ?? 0 };
    case typeCodes.TXT:
      return { ...base, value: Array.isArray(record.data) ? record.data.join("") : "" };
    case typeCodes.TLSA: // dns2 does not know it, and so keeps its data as it came
      return { ...base, value: Buffer.isBuffer(record.data) ? record.data.toString("hex") : "" };
    default:
      return { ...base, value: "" };
  }
}

/** As names are compared and shown: lower case, without the final dot. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/**
 * `name` with each letter in upper or lower case by chance (draft-vixie-dnsext-dns0x20): a forger has to guess that
 * too, a bit a letter.
 */
export function mixedCase(name: string): string {
  let bits = 0;
  let mixed = "";
  for (let i = 0; i < name.length; i++) {
    if (i % 32 === 0) bits = randomInt(2 ** 32); // of bytes that are drawn in store: randomBytes for each name costs five times as much
    mixed += (bits >>> (i % 32)) & 1 ? name.charAt(i).toUpperCase() : name.charAt(i);
  }
  return mixed;
}

/** A name that a query can carry (RFC 1035 §2.3.4), in printable ASCII; underscores are ordinary. */
export function queryableName(name: string): boolean {
  return name.length <= 253 && name.split(".").every((label) => /^[\x21-\x2d\x2f-\x7e]{1,63}$/.test(label));
}

/** dns2's reader, bytewise, with an end: the reads of an honest message are a small multiple of its length. */
export class CountingReader implements Reader {
  buffer: Buffer;
  /** In bits. */
  offset = 0;
  #left: number;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
    this.#left = 16_384 + 16 * buffer.length;
  }

  read(bits: number): number {
    if (bits > this.remaining()) throw new RangeError("a field runs past the end of the message");
    if (--this.#left < 0) throw new RangeError("names point at each other without end");
    const at = this.offset >>> 3;
    const shift = this.offset & 7;
    this.offset += bits;
    if (shift + bits <= 8) return (this.buffer.readUInt8(at) >>> (8 - shift - bits)) & ((1 << bits) - 1);
    return this.buffer.readUIntBE(at, bits / 8); // longer fields stand on byte bounds
  }

  remaining(): number {
    return Math.max(0, this.buffer.length * 8 - this.offset);
  }
}
