// The DNS of the attacks: records that are set, and names whose answer follows from their form. Written on bytes, since
// it shares the machine with what is measured. UDP and TCP on one port of loopback.
//   freshN.test  a live destination that nobody has asked for before
//   manyN.test   3,000 MX hosts; the name server of these hosts is silent
//   silentN.test, deadN.test  no answer to anything
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";

const typeNumbers: Record<string, number> = { A: 1, CNAME: 5, PTR: 12, MX: 15, TXT: 16, AAAA: 28 };
const ttlSeconds = 3600;
const udpMost = 1232;
const mxHosts = 3_000;

export interface Zone {
  set(name: string, type: string, values: string[]): void;
  /** Questions so far, those without an answer included. */
  asked(): number;
}

export async function startDns(port: number, liveAddress: string): Promise<Zone> {
  const records = new Map<string, Buffer[]>();
  const silent = /(?:^|\.)(?:silent|dead)\d*\.test$|\.many\d+\.test$/;
  const manyAnswer = Buffer.concat(Array.from({ length: mxHosts }, (_, n) => manyRecord(n)));
  let questions = 0;

  const answer = (query: Buffer, most: number): Buffer | null => {
    const { name, type, end } = questionOf(query);
    questions++;
    if (silent.test(name)) return null;
    if (/^many\d+\.test$/.test(name) && type === typeNumbers["MX"])
      return reply(query, end, manyAnswer, mxHosts, most);
    const fresh = /^(mx\.)?fresh\d+\.test$/.exec(name);
    if (fresh?.[1] && type === typeNumbers["A"])
      return reply(query, end, record(type, rdata("A", liveAddress)), 1, most);
    if (fresh && !fresh[1] && type === typeNumbers["MX"])
      return reply(query, end, record(type, rdata("MX", `10 mx.${name}`)), 1, most);
    const found = records.get(`${name} ${type}`) ?? [];
    const exists = found.length > 0 || fresh !== null || (records.get(name)?.length ?? 0) > 0;
    return reply(query, end, Buffer.concat(found), found.length, most, exists);
  };

  const udp = createSocket("udp4");
  udp.on("message", (query, from) => {
    const bytes = answer(query, udpMost);
    if (bytes) udp.send(bytes, from.port, from.address);
  });
  const tcp = createServer((socket) => serveTcp(socket, (query) => answer(query, 65_535)));
  udp.bind(port, "127.0.0.1");
  tcp.listen(port, "127.0.0.1");
  await Promise.all([once(udp, "listening"), once(tcp, "listening")]);
  udp.on("error", () => undefined);
  return {
    set(name, type, values) {
      const key = name.toLowerCase();
      const number = typeNumbers[type] ?? 0;
      records.set(
        `${key} ${number}`,
        values.map((value) => record(number, rdata(type, value))),
      );
      records.set(key, [Buffer.alloc(0)]);
    },
    asked: () => questions,
  };
}

function serveTcp(socket: Socket, answer: (query: Buffer) => Buffer | null): void {
  let held = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    held = Buffer.concat([held, chunk]);
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const end = 2 + held.readUInt16BE(0);
      const bytes = answer(held.subarray(2, end));
      held = held.subarray(end);
      if (bytes) socket.write(Buffer.concat([uint16(bytes.length), bytes]));
    }
  });
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** The question goes back as it came, its case too. */
function reply(
  query: Buffer,
  end: number,
  answers: Buffer,
  count: number,
  most: number,
  exists = true,
): Buffer {
  const head = Buffer.from(query.subarray(0, end));
  const cut = end + answers.length > most;
  head.writeUInt16BE(0x8180 | (cut ? 0x0200 : 0) | (exists ? 0 : 3), 2);
  head.writeUInt16BE(cut ? 0 : count, 6);
  head.writeUInt32BE(count > 0 ? 0 : 0x0001_0000, 8);
  if (cut) head.writeUInt32BE(0, 8);
  if (cut || count > 0) return cut ? head : Buffer.concat([head, answers]);
  return Buffer.concat([head, record(6, soa)]);
}

/** Its name is the question's. */
function record(type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(12);
  fixed.writeUInt16BE(0xc00c, 0);
  fixed.writeUInt16BE(type, 2);
  fixed.writeUInt16BE(1, 4);
  fixed.writeUInt32BE(ttlSeconds, 6);
  fixed.writeUInt16BE(data.length, 10);
  return Buffer.concat([fixed, data]);
}

/** `h2z.many7.test`, its end a pointer to the question. */
function manyRecord(n: number): Buffer {
  const label = n.toString(36).padStart(3, "0");
  return record(15, Buffer.concat([uint16(10), Buffer.from(`\x03${label}`), uint16(0xc00c)]));
}

function rdata(type: string, value: string): Buffer {
  if (type === "A") return Buffer.from(value.split(".").map(Number));
  if (type === "TXT") {
    const pieces = value.match(/[^]{1,255}/g) ?? [""];
    return Buffer.concat(
      pieces.map((piece) => Buffer.concat([Buffer.from([piece.length]), Buffer.from(piece)])),
    );
  }
  if (type === "MX") {
    const [preference, host = ""] = value.split(/\s+/, 2);
    return Buffer.concat([uint16(Number(preference)), wireName(host)]);
  }
  return wireName(value);
}

function wireName(name: string): Buffer {
  const labels = name.split(".").filter(Boolean);
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

const numbers = Buffer.alloc(20);
[1, 3600, 600, 86_400, 60].forEach((value, i) => numbers.writeUInt32BE(value, i * 4));
const soa = Buffer.concat([wireName("ns.test"), wireName("hostmaster.test"), numbers]);
