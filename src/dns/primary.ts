// The primary server of a zone: what stands in it, and dynamic updates of it (RFC 2136), signed with a TSIG key. Over TCP
// alone, a connection an exchange: no reply is cut short. A reply counts only with the key's signature, which BIND and Knot
// put under answers to questions, too; one without can only be a refusal. What is done rests on what was read: that stands
// in the prerequisites of the update.
import { randomInt } from "node:crypto";
import { connect, isIP } from "node:net";
import type { Clock } from "../clock.ts";
import { MalformedReply, plainName, queryableName } from "./message.ts";
import { classes, opcodes, readMessage, types, uint16, wireMessage } from "./raw-message.ts";
import type { RawMessage, RawRecord, RecordToWrite } from "./raw-message.ts";
import { sign, verify } from "./tsig.ts";
import type { TsigKey } from "./tsig-key.ts";

export interface PrimaryAddress {
  host: string;
  port: number;
}

/** `refused`: the server says that the key may not do it. */
export interface Failed {
  kind: "failed";
  why: string;
  refused: boolean;
}

export type ZoneFound = { kind: "zone"; zone: string };
export type RecordsFound = { kind: "records"; records: RawRecord[]; alias: string | null };

export interface Update {
  zone: string;
  /** Each as RFC 2136 §2.4 has it. */
  prerequisites: RecordToWrite[];
  /** Each as RFC 2136 §2.5 has it. */
  changes: RecordToWrite[];
}

export interface Primary {
  /** `ns1.acme.example:53` */
  shown: string;
  /** The zone that holds `name`; failed where the server is not authoritative for it. */
  zoneOf(name: string): Promise<ZoneFound | Failed>;
  /** The records of exactly this name and type, or what the name is an alias of. */
  records(name: string, type: number): Promise<RecordsFound | Failed>;
  update(update: Update): Promise<{ kind: "done" } | Failed>;
}

/** Of a whole exchange, from the connection on. */
const timeoutMs = 15_000;

/** `ns1.acme.example`, an address, each with a port where it is not 53; null for anything else. */
export function parsePrimary(text: string): PrimaryAddress | null {
  if (isIP(text) !== 0) return { host: text, port: 53 };
  const [, bracketed, plain, port = "53"] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain?.replace(/\.$/, "");
  const valid = bracketed === undefined ? queryableName(host ?? "") : isIP(bracketed) === 6;
  if (host === undefined || !valid || Number(port) < 1 || Number(port) > 65_535) return null;
  return { host, port: Number(port) };
}

export function createPrimary(deps: { address: PrimaryAddress; key: TsigKey; clock: Clock }): Primary {
  const { address, key, clock } = deps;
  const shown = address.host.includes(":")
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`;
  const failed = (why: string, refused = false): Failed => ({
    kind: "failed",
    why: `${shown} ${why}`,
    refused,
  });
  const seconds = (): number => Math.floor(clock.now() / 1000);

  /** The reply to a message of ours, once it is shown to be that. */
  const ask = async (
    opcode: number,
    asked: { name: string; type: number },
    message: Buffer,
  ): Promise<{ kind: "reply"; reply: RawMessage } | Failed> => {
    const { bytes, mac } = sign(message, key, seconds());
    const exchanged = await exchange(address, bytes, clock);
    if (typeof exchanged === "string") return failed(exchanged);
    let reply: RawMessage;
    try {
      reply = readMessage(exchanged);
    } catch (error) {
      if (!(error instanceof MalformedReply)) throw error;
      return failed(`sent a reply that cannot be read: ${error.message}`);
    }
    const { id, isReply, question } = reply;
    // RFC 2136 §3.8: a reply may leave the zone out.
    const other =
      question !== null && (question.name !== plainName(asked.name) || question.type !== asked.type);
    if (id !== message.readUInt16BE(0) || !isReply || reply.opcode !== opcode || other)
      return failed("sent a reply to another request");
    const signature = verify(exchanged, reply, key, mac, seconds());
    if (signature.kind === "bad") return failed(`sent a reply that cannot be trusted: ${signature.why}`);
    if (signature.kind === "refused")
      return failed(`does not take the key ${key.name}: ${signature.why}`, true);
    if (signature.kind === "none")
      return failed(
        `sent a reply without a signature (${codeOf(reply.rcode)})`,
        codeOf(reply.rcode) === "REFUSED",
      );
    return { kind: "reply", reply };
  };

  const query = async (
    name: string,
    type: number,
  ): Promise<{ kind: "reply"; reply: RawMessage } | Failed> => {
    const asked = { name, type };
    const answered = await ask(opcodes.query, asked, wireMessage(randomInt(0x10000), opcodes.query, asked));
    if (answered.kind === "failed") return answered;
    const { rcode, authoritative } = answered.reply;
    if (rcode !== 0 && rcode !== 3)
      return failed(`answers ${codeOf(rcode)} when asked for ${name}`, rcode === 5 || rcode === 9);
    if (!authoritative) return failed(`is not the primary server of ${name}, or delegates it to others`);
    return answered;
  };

  return {
    shown,
    async zoneOf(name) {
      // An alias has no SOA beside it: then what is above it is asked.
      for (let at = name; at !== ""; at = at.includes(".") ? at.slice(at.indexOf(".") + 1) : "") {
        const answered = await query(at, types.SOA);
        if (answered.kind === "failed") return answered;
        const { answers, authorities } = answered.reply;
        const soa = [...answers, ...authorities].find(({ type }) => type === types.SOA);
        if (soa && (soa.name === plainName(name) || plainName(name).endsWith(`.${soa.name}`)))
          return { kind: "zone", zone: soa.name };
      }
      return failed(`shows no zone that holds ${name}`);
    },
    async records(name, type) {
      const answered = await query(name, type);
      if (answered.kind === "failed") return answered;
      const own = answered.reply.answers.filter(
        (record) => record.name === plainName(name) && record.class === classes.IN,
      );
      return {
        kind: "records",
        records: own.filter((record) => record.type === type),
        alias: own.find((record) => record.type === types.CNAME)?.inner ?? null,
      };
    },
    async update({ zone, prerequisites, changes }) {
      const asked = { name: zone, type: types.SOA };
      const message = wireMessage(randomInt(0x10000), opcodes.update, asked, prerequisites, changes);
      const answered = await ask(opcodes.update, asked, message);
      if (answered.kind === "failed") return answered;
      const { rcode } = answered.reply;
      if (rcode === 0) return { kind: "done" };
      return failed(`refuses the update of ${zone}: ${whyNot(rcode, key.name)}`, rcode === 5 || rcode === 9);
    },
  };
}

/** RFC 2136 §2.2 and RFC 1035 §4.1.1. */
const codes = [
  "NOERROR",
  "FORMERR",
  "SERVFAIL",
  "NXDOMAIN",
  "NOTIMP",
  "REFUSED",
  "YXDOMAIN",
  "YXRRSET",
  "NXRRSET",
  "NOTAUTH",
  "NOTZONE",
];
const codeOf = (rcode: number): string => codes[rcode] ?? String(rcode);

function whyNot(rcode: number, key: string): string {
  switch (codeOf(rcode)) {
    case "SERVFAIL":
      return "SERVFAIL: it could not write the zone; its log says why";
    case "NOTIMP":
      return "NOTIMP: it takes no dynamic updates";
    case "REFUSED":
      return `REFUSED: the key ${key} may not make it (BIND: update-policy or allow-update of the zone, Knot: its acl)`;
    case "NOTAUTH":
      return "NOTAUTH: it is not the primary server of the zone";
    case "YXDOMAIN":
      return "YXDOMAIN: the zone was changed meanwhile, or a name has the same records as a wildcard above it; nothing was done";
    case "YXRRSET":
    case "NXRRSET":
    case "NXDOMAIN":
      return `${codeOf(rcode)}: the zone was changed meanwhile; nothing was done`;
    default:
      return codeOf(rcode);
  }
}

/** The reply's octets, or why there are none. Over TCP each message has its length before it (RFC 1035 §4.2.2). */
function exchange({ host, port }: PrimaryAddress, message: Buffer, clock: Clock): Promise<Buffer | string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let held = Buffer.alloc(0);
    const finish = (result: Buffer | string): void => {
      timer.cancel();
      socket.destroy();
      resolve(result);
    };
    const timer = clock.after(timeoutMs, () => finish(`does not answer within ${timeoutMs / 1000} s`));
    socket.on("connect", () => socket.write(Buffer.concat([uint16(message.length), message])));
    socket.on("error", (error) => finish(`cannot be reached: ${error.message}`));
    socket.on("close", () => finish("closed the connection without an answer"));
    socket.on("data", (chunk) => {
      held = Buffer.concat([held, chunk]);
      if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return;
      finish(held.subarray(2, 2 + held.readUInt16BE(0)));
    });
  });
}
