// A DNS server of made-up names for tests: answers like a recursive resolver over UDP and TCP on
// one loopback port, from records that a test sets and removes while it runs. It can also fail in the ways that
// real resolvers and attackers do. TTLs are 0 unless a test says otherwise, so that a change is seen at once.
import { createSocket } from "node:dgram";
import type { Socket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import type { Server, Socket as TcpSocket } from "node:net";
import { Packet } from "dns2";
import type { Question, Resource } from "dns2";

export type RecordType = "MX" | "A" | "AAAA" | "TXT" | "CNAME" | "PTR" | "TLSA";

/** `{ "a.test": { MX: ["10 mx.a.test"], A: ["127.0.0.1"] } }`; a null MX is `"0 ."`, a TLSA `"3 1 1 <hex>"`. */
export type Records = Record<string, Partial<Record<RecordType, string[]>>>;

export type Failure =
  | "servfail"
  | "refused"
  | "formerr"
  /** No answer at all. */
  | "timeout"
  /** TC over UDP, the whole answer over TCP. */
  | "truncated"
  /** TC over UDP, and TCP is closed without an answer. */
  | "truncated_closed"
  /** A forged answer with a wrong transaction id comes before the right one. */
  | "wrong_id"
  /** A forged answer to another question comes before the right one. */
  | "wrong_question"
  /** A forged answer with the name in another case comes before the right one. */
  | "other_case"
  /** The server repeats every name in lower case. */
  | "lower_case"
  /** A name that points at itself. */
  | "compression_loop"
  /** The right header and then noise. */
  | "malformed";

export interface DnsServer {
  port: number;
  address: string;
  /** `127.0.0.1:PORT`, the form of `dns.servers`. */
  server: string;
  /** Replaces the records of one name and type. An empty list: the name exists without that type. */
  set(name: string, type: RecordType, values: string[], ttlSeconds?: number): void;
  /** Forgets a type of a name, or the whole name: NXDOMAIN then. */
  remove(name: string, type?: RecordType): void;
  /** Every question about this name fails from now on; null: it works again. */
  fail(name: string, how: Failure | null): void;
  /** Asked at each other question: how it fails; null: it does not. */
  failBy(draw: (name: string, type: string) => Failure | null): void;
  /** Whether answers carry the AD bit. */
  authenticate(yes: boolean): void;
  /** How long a resolver may keep a "no such name"; 0 at first. */
  negativeTtl(seconds: number): void;
  /** Every question so far, in order; UDP and TCP both. */
  queries: { name: string; type: string; over: "udp" | "tcp"; fromPort: number }[];
  stop(): Promise<void>;
}

interface Zone {
  names: Map<string, Map<RecordType, { values: string[]; ttlSeconds: number }>>;
  failures: Map<string, Failure>;
  draw: (name: string, type: string) => Failure | null;
  authenticated: boolean;
  negativeTtlSeconds: number;
}

const clean = (name: string): string => name.toLowerCase().replace(/\.$/, "");

export async function startDnsServer(records: Records = {}): Promise<DnsServer> {
  const zone: Zone = {
    names: new Map(),
    failures: new Map(),
    draw: () => null,
    authenticated: false,
    negativeTtlSeconds: 0,
  };
  const queries: DnsServer["queries"] = [];
  const connections = new Set<TcpSocket>();

  const { udp, tcp, port } = await listen();
  udp.on("message", (bytes, from) => {
    for (const reply of answer(zone, bytes, "udp", queries, from.port))
      udp.send(reply, from.port, from.address);
  });
  tcp.on("connection", (socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
    socket.on("error", () => socket.destroy());
    let held = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const end = 2 + held.readUInt16BE(0);
        const replies = answer(zone, held.subarray(2, end), "tcp", queries, socket.remotePort ?? 0);
        held = held.subarray(end);
        if (replies === closed) return socket.destroy();
        for (const reply of replies) socket.write(Buffer.concat([uint16(reply.length), reply]));
      }
    });
  });

  const set: DnsServer["set"] = (name, type, values, ttlSeconds = 0) => {
    const types =
      zone.names.get(clean(name)) ?? new Map<RecordType, { values: string[]; ttlSeconds: number }>();
    zone.names.set(clean(name), types.set(type, { values, ttlSeconds }));
  };
  for (const [name, types] of Object.entries(records)) {
    for (const type of recordTypes) if (types[type]) set(name, type, types[type]);
  }

  return {
    port,
    address: "127.0.0.1",
    server: `127.0.0.1:${port}`,
    queries,
    set,
    remove(name, type) {
      if (type === undefined) zone.names.delete(clean(name));
      else if (zone.names.get(clean(name))?.delete(type) && zone.names.get(clean(name))?.size === 0)
        zone.names.delete(clean(name));
    },
    fail(name, how) {
      if (how === null) zone.failures.delete(clean(name));
      else zone.failures.set(clean(name), how);
    },
    failBy: (draw) => void (zone.draw = draw),
    authenticate: (yes) => void (zone.authenticated = yes),
    negativeTtl: (seconds) => void (zone.negativeTtlSeconds = seconds),
    async stop() {
      for (const socket of connections) socket.destroy();
      udp.close();
      tcp.close();
      await Promise.all([once(udp, "close"), once(tcp, "close")]);
    },
  };
}

const recordTypes: readonly RecordType[] = ["MX", "A", "AAAA", "TXT", "CNAME", "PTR", "TLSA"];
/** dns2 does not know TLSA, and takes its data as bytes. */
const codeOf = (type: RecordType): number => (type === "TLSA" ? 52 : Packet.TYPE[type]);
const closed: Buffer[] = [];

/** Both transports on one port: UDP takes any, TCP the same, again where that one is taken. */
async function listen(): Promise<{ udp: Socket; tcp: Server; port: number }> {
  for (let tries = 0; ; tries++) {
    const udp = createSocket("udp4");
    udp.bind(0, "127.0.0.1");
    await once(udp, "listening");
    const { port } = udp.address();
    const tcp = createServer();
    tcp.listen(port, "127.0.0.1");
    try {
      await once(tcp, "listening");
      return { udp, tcp, port };
    } catch (error) {
      udp.close();
      if (tries > 20) throw error;
    }
  }
}

function answer(
  zone: Zone,
  bytes: Buffer,
  over: "udp" | "tcp",
  queries: DnsServer["queries"],
  fromPort: number,
): Buffer[] {
  const query = Packet.parse(bytes);
  const question = query.questions[0];
  if (!question) return [];
  const name = clean(question.name);
  const type = Packet.typeName(question.type);
  queries.push({ name, type, over, fromPort });
  const failure = zone.failures.get(name) ?? zone.draw(name, type);

  const reply = Packet.createResponseFromRequest(query);
  reply.header.ra = 1;
  const right = (): Buffer => {
    fill(zone, reply, question);
    return reply.toBuffer();
  };
  const refuse = (rcode: number): Buffer[] => {
    reply.header.rcode = rcode;
    return [reply.toBuffer()];
  };
  switch (failure) {
    case "servfail":
      return refuse(Packet.RCODE.SERVFAIL);
    case "refused":
      return refuse(Packet.RCODE.REFUSED);
    case "formerr":
      return refuse(Packet.RCODE.FORMERR);
    case "timeout":
      return [];
    case "truncated":
    case "truncated_closed":
      if (over === "tcp") return failure === "truncated" ? [right()] : closed;
      reply.header.tc = 1;
      return [reply.toBuffer()];
    case "wrong_id":
      return [forge(query, { id: (query.header.id + 1) % 65_536 }, question), right()];
    case "wrong_question":
      return [forge(query, {}, { ...asked(question), name: `other.${name}` }), right()];
    case "other_case":
      return [forge(query, {}, { ...asked(question), name: otherCase(question.name) }), right()];
    case "lower_case":
      reply.questions = [new Packet.Question({ ...asked(question), name })];
      return [right()];
    case "compression_loop":
      return [withTail(reply, Buffer.from([0xc0, reply.toBuffer().length]))];
    case "malformed":
      return [withTail(reply, Buffer.from("80ffee", "hex"))];
    case null:
      return [fitted(right(), over, query, reply)];
  }
}

/** Answers as a recursive resolver does: the chain of aliases, then what its end has; else the SOA of a negative answer. */
function fill(zone: Zone, reply: Packet, question: Question): void {
  if (zone.authenticated) Object.assign(reply.header, { ad: 1 });
  const wanted = recordTypes.find((type) => codeOf(type) === question.type);
  let name = clean(question.name);
  for (let hops = 0; hops < 20; hops++) {
    const types = zone.names.get(name);
    const alias = types?.get("CNAME");
    const found = wanted && types?.get(wanted);
    if (found && found.values.length > 0) {
      for (const value of found.values) reply.answers.push(resource(name, wanted, value, found.ttlSeconds));
      return;
    }
    if (!alias?.values[0]) {
      const exists =
        types !== undefined || [...zone.names.keys()].some((other) => other.endsWith(`.${name}`));
      if (!exists) reply.header.rcode = Packet.RCODE.NXDOMAIN;
      reply.authorities.push(authority(name, zone.negativeTtlSeconds));
      return;
    }
    reply.answers.push(resource(name, "CNAME", alias.values[0], alias.ttlSeconds));
    name = clean(alias.values[0]);
  }
}

function resource(name: string, type: RecordType, value: string, ttl: number): Resource {
  const base = { name, type: codeOf(type), class: Packet.CLASS.IN, ttl };
  switch (type) {
    case "A":
    case "AAAA":
      return new Packet.Resource({ ...base, address: value });
    case "CNAME":
    case "PTR":
      return new Packet.Resource({ ...base, domain: value });
    case "TXT":
      return new Packet.Resource({ ...base, data: value.match(/[^]{1,255}/g) ?? [""] });
    case "TLSA": {
      const [usage, selector, matching, data = ""] = value.split(/\s+/, 4);
      const head = Buffer.from([Number(usage), Number(selector), Number(matching)]);
      return new Packet.Resource({ ...base, data: Buffer.concat([head, Buffer.from(data, "hex")]) });
    }
    case "MX": {
      const [preference, exchange] = value.split(/\s+/, 2);
      return new Packet.Resource({ ...base, priority: Number(preference), exchange: exchange ?? "" });
    }
  }
}

function authority(name: string, ttl: number): Resource {
  return new Packet.Resource({
    name: name.split(".").slice(-1).join("."),
    type: Packet.TYPE.SOA,
    class: Packet.CLASS.IN,
    ttl,
    primary: "ns.test",
    admin: "hostmaster.test",
    serial: 1,
    refresh: 3600,
    retry: 600,
    expiration: 86_400,
    minimum: ttl,
  });
}

/** Over UDP no more than the asker takes (512 without EDNS): the rest is fetched by TCP. */
function fitted(whole: Buffer, over: "udp" | "tcp", query: Packet, reply: Packet): Buffer {
  const opt = query.additionals.find((record) => record.type === Packet.TYPE.EDNS);
  if (over === "tcp" || whole.length <= Math.max(512, opt?.class ?? 0)) return whole;
  const cut = Packet.createResponseFromRequest(query);
  Object.assign(cut.header, { ra: 1, tc: 1, rcode: reply.header.rcode });
  return cut.toBuffer();
}

function forge(
  query: Packet,
  header: { id?: number },
  question: Pick<Question, "name" | "type" | "class">,
): Buffer {
  const forged = Packet.createResponseFromRequest(query);
  Object.assign(forged.header, { ra: 1, ...header });
  forged.questions = [new Packet.Question(question)];
  const type = recordTypes.find((each) => codeOf(each) === question.type) ?? "A";
  const lies: Record<RecordType, string> = {
    MX: "0 evil.test",
    A: "192.0.2.66",
    AAAA: "2001:db8::66",
    TXT: "evil",
    CNAME: "evil.test",
    PTR: "evil.test",
    TLSA: "3 1 1 00",
  };
  forged.answers.push(resource(clean(question.name), type, lies[type], 3600));
  return forged.toBuffer();
}

const asked = ({ name, type, class: cls }: Question): Pick<Question, "name" | "type" | "class"> => ({
  name,
  type,
  class: cls,
});

function otherCase(name: string): string {
  return Array.from(name, (char) =>
    char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase(),
  ).join("");
}

/** A reply that promises one answer and gives these bytes as its name. */
function withTail(reply: Packet, name: Buffer): Buffer {
  const head = reply.toBuffer();
  head.writeUInt16BE(1, 6);
  return Buffer.concat([head, name, Buffer.from("000100010000000000047f000001", "hex")]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
