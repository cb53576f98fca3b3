// DNS messages as a dynamic update needs them (RFC 2136 §2): records of any class, their data octet for octet, and where
// each begins, which a signature over the message has to know. Written here, since dns2 encodes no record without data,
// compresses names that may not be (RFC 8945 §4.2), and gives text in place of octets; names are read by it. What
// comes is hostile: message.ts's reader counts, and the records are limited.
import { Packet } from "dns2";
import { CountingReader, MalformedReply, maxRecords, plainName } from "./message.ts";

export const classes = { IN: 1, NONE: 254, ANY: 255 } as const;
export const types = { CNAME: 5, SOA: 6, MX: 15, TXT: 16, TSIG: 250, ANY: 255 } as const;
export const opcodes = { query: 0, update: 5 } as const;

export interface RawRecord {
  name: string;
  type: number;
  class: number;
  ttlSeconds: number;
  data: Buffer;
  /** The name in its data: of a CNAME, an MX and a TSIG, which begins with its algorithm; else empty. */
  inner: string;
  /** Where the data goes on behind that name; of a TSIG alone. */
  afterInner: number;
  /** Where the record begins in the message. */
  start: number;
}

export interface RawMessage {
  id: number;
  isReply: boolean;
  opcode: number;
  authoritative: boolean;
  rcode: number;
  question: { name: string; type: number } | null;
  answers: RawRecord[];
  authorities: RawRecord[];
  additionals: RawRecord[];
}

/** Throws MalformedReply. */
export function readMessage(bytes: Buffer): RawMessage {
  if (bytes.length < Packet.HEADER_SIZE) throw new MalformedReply("a message without a whole header");
  try {
    const reader = new CountingReader(bytes);
    const header = Packet.Header.parse(reader);
    const { qdcount, ancount, nscount, arcount } = header;
    if (qdcount > 1 || ancount + nscount + arcount > maxRecords)
      throw new RangeError(`more than one question or ${maxRecords} records`);
    const asked = qdcount === 1 ? Packet.Question.parse(reader) : null;
    const records = (count: number): RawRecord[] => Array.from({ length: count }, () => readRecord(reader));
    return {
      id: header.id,
      isReply: header.qr === 1,
      opcode: header.opcode,
      authoritative: header.aa === 1,
      rcode: header.rcode,
      question: asked && { name: plainName(asked.name), type: asked.type },
      answers: records(ancount),
      authorities: records(nscount),
      additionals: records(arcount),
    };
  } catch (error) {
    throw new MalformedReply(error instanceof Error ? error.message : String(error));
  }
}

function readRecord(reader: CountingReader): RawRecord {
  const start = reader.offset / 8;
  const name = plainName(Packet.Name.decode(reader));
  const [type, cls, ttlSeconds, length] = [
    reader.read(16),
    reader.read(16),
    reader.read(32),
    reader.read(16),
  ];
  const from = reader.offset / 8;
  if (length * 8 > reader.remaining()) throw new RangeError("a record runs past the end of the message");
  const data = reader.buffer.subarray(from, from + length);
  let inner = "";
  let afterInner = 0;
  if (length > 0 && (type === types.CNAME || type === types.MX || type === types.TSIG)) {
    if (type === types.MX) reader.read(16);
    inner = plainName(Packet.Name.decode(reader));
    afterInner = reader.offset / 8 - from;
    if (afterInner > length) throw new RangeError("a name runs past the end of its record");
  }
  reader.offset = (from + length) * 8;
  return { name, type, class: cls, ttlSeconds, data, inner, afterInner, start };
}

/** Uncompressed, in lower case: the canonical form (RFC 4034 §6.2). `name` is one that queryableName takes, or empty: the root. */
export function wireName(name: string): Buffer {
  const labels = name === "" ? [] : name.toLowerCase().split(".");
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, "latin1")]),
    Buffer.alloc(1),
  ]);
}

export function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

export interface RecordToWrite {
  name: string;
  type: number;
  class: number;
  ttlSeconds?: number;
  data?: Buffer;
}

export function wireRecord({ name, type, class: cls, ttlSeconds = 0, data }: RecordToWrite): Buffer {
  const ttl = Buffer.alloc(4);
  ttl.writeUInt32BE(ttlSeconds);
  const body = data ?? Buffer.alloc(0);
  return Buffer.concat([wireName(name), uint16(type), uint16(cls), ttl, uint16(body.length), body]);
}

/** A message of ours: a header without flags, one question or zone, and the sections behind it. */
export function wireMessage(
  id: number,
  opcode: number,
  asked: { name: string; type: number },
  answers: readonly RecordToWrite[] = [],
  authorities: readonly RecordToWrite[] = [],
): Buffer {
  const header = [id, opcode << 11, 1, answers.length, authorities.length, 0].map(uint16);
  const question = [wireName(asked.name), uint16(asked.type), uint16(classes.IN)];
  return Buffer.concat([...header, ...question, ...[...answers, ...authorities].map(wireRecord)]);
}

/** The data of a TXT record: strings of at most 255 octets (RFC 1035 §3.3.14). */
export function textData(text: string): Buffer {
  const octets = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at === 0 || at < octets.length; at += 255) {
    const piece = octets.subarray(at, at + 255);
    pieces.push(Buffer.from([piece.length]), piece);
  }
  return Buffer.concat(pieces);
}

/** The strings of a TXT record joined; null where they are not whole. */
export function textOf(data: Buffer): string | null {
  const pieces: Buffer[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + 1 + (data[at] ?? 0);
    if (end > data.length) return null;
    pieces.push(data.subarray(at + 1, end));
    at = end;
  }
  return Buffer.concat(pieces).toString();
}
