// Puts the records of a domain into its zone by dynamic update (RFC 2136). What stands there decides: a record that is
// there already stays, and one of others that ours would contradict is left as it is and said. Nothing is removed but an
// SPF record that this program made, where the new one takes its place. What was seen is a prerequisite of each change, so
// that nothing is built on what has changed meanwhile.
import { isDeepStrictEqual } from "node:util";
import { classes, textData, textOf, types, uint16, wireName } from "../dns/raw-message.ts";
import type { RecordToWrite } from "../dns/raw-message.ts";
import type { Failed, Primary, RecordsFound } from "../dns/primary.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import { printable, verifyDkim, verifyDmarc } from "./verify-records.ts";

/** `keep`: it is there, or something that does as well. `conflict`: what others have there stands against it. */
export const publishActs = ["add", "replace", "keep", "conflict"] as const;
export type PublishAct = (typeof publishActs)[number];

export interface Change {
  record: DnsRecord;
  zone: string;
  act: PublishAct;
  /** Why it is not added. */
  why: string | null;
  standing: Standing;
}

/** What stands at the name of a record. */
interface Standing {
  /** Of its type: data, and as text. */
  records: { data: Buffer; text: string; ttlSeconds: number }[];
  alias: string | null;
  /** A wildcard answers for the name, which is not there itself. */
  synthesised: boolean;
  /** A wildcard gives the record that is wanted: whether the name has it too does not show. */
  given: boolean;
  /** Whether a CNAME cannot stand here since others do; asked for a CNAME alone. */
  taken: boolean;
}

const ttlSeconds = 3600;
const codes = { TXT: types.TXT, MX: types.MX, CNAME: types.CNAME } as const;
/** What stands beside the name of a link: A, NS, MX, TXT, AAAA. */
const beside = [1, 2, types.MX, types.TXT, 28];

/** What would be done for each record. */
export async function planPublication(
  primary: Primary,
  records: readonly DnsRecord[],
): Promise<{ kind: "plan"; changes: Change[] } | Failed> {
  const changes: Change[] = [];
  for (const record of records) {
    const found = await primary.zoneOf(record.name);
    if (found.kind === "failed") return found;
    const standing = await look(primary, record, found.zone);
    if ("kind" in standing) return standing;
    changes.push({ record, zone: found.zone, standing, ...decide(record, standing) });
  }
  return { kind: "plan", changes };
}

/** Makes the changes, a zone at a time, each zone's together or not at all; then looks whether the server shows them. */
export async function publish(
  primary: Primary,
  changes: readonly Change[],
): Promise<{ kind: "published" } | Failed> {
  const open = changes.filter(({ act }) => act === "add" || act === "replace");
  for (const [zone, own] of Map.groupBy(open, (change) => change.zone)) {
    const update = { zone, prerequisites: own.flatMap(prerequisitesOf), changes: own.flatMap(changesOf) };
    const done = await primary.update(update);
    if (done.kind === "failed") return done;
  }
  for (const { record, zone } of open) {
    const standing = await look(primary, record, zone);
    if ("kind" in standing) return standing;
    if (!standing.given && decide(record, standing).act !== "keep")
      return {
        kind: "failed",
        why: `${primary.shown} accepted the update and does not show the ${record.type} record at ${record.name}`,
        refused: false,
      };
  }
  return { kind: "published" };
}

async function look(primary: Primary, record: DnsRecord, zone: string): Promise<Standing | Failed> {
  const { type, name } = record;
  const found = await standingAt(primary, zone, name, codes[type]);
  if (found.kind === "failed") return found;
  const records = found.records.map(({ data, inner, ttlSeconds: ttl }) => {
    return { data, text: textIn(type, data, inner), ttlSeconds: ttl };
  });
  const { alias, synthesised, wildcard } = found;
  const given = wildcard !== null && has(wildcard, record);
  const standing = { records, alias, synthesised, given, taken: false };
  if (type !== "CNAME" || found.alias !== null) return standing;
  for (const other of beside) {
    const seen = await standingAt(primary, zone, name, other);
    if (seen.kind === "failed") return seen;
    standing.taken ||= seen.records.length > 0;
  }
  return standing;
}

/** `wildcard`: what it answers, where it is one that does. */
type Seen = RecordsFound & { synthesised: boolean; wildcard: RecordsFound | null };

function has({ records, alias }: RecordsFound, { type, value }: DnsRecord): boolean {
  if (type === "CNAME") return alias === value;
  return alias === null && records.some(({ data, inner }) => textIn(type, data, inner) === value);
}

/** What stands at the name itself: where a wildcard above it gives the same answer, nothing does (RFC 4592 §2.2). */
async function standingAt(
  primary: Primary,
  zone: string,
  name: string,
  type: number,
): Promise<Seen | Failed> {
  const found = await primary.records(name, type);
  if (found.kind === "failed") return found;
  const own: Seen = { ...found, synthesised: false, wildcard: null };
  if (found.records.length === 0 && found.alias === null) return own;
  for (const parent of parentsOf(name, zone)) {
    const wildcard = await primary.records(`*.${parent}`, type);
    if (wildcard.kind === "failed") return wildcard;
    if (isDeepStrictEqual(contentOf(found), contentOf(wildcard)))
      return { kind: "records", records: [], alias: null, synthesised: true, wildcard };
  }
  return own;
}

/** Names in data may be shortened by pointers, so those that are read stand for them. */
const contentOf = ({ records, alias }: RecordsFound): unknown => [
  alias,
  records
    .map(({ type, data, inner }) => {
      if (inner === "") return data.toString("hex");
      return type === types.MX ? textIn("MX", data, inner) : inner;
    })
    .toSorted(),
];

/** `b.acme.test`, `acme.test` of `a.b.acme.test` in the zone `acme.test`. */
function parentsOf(name: string, zone: string): string[] {
  const labels = name.split(".");
  return labels
    .map((_, i) => labels.slice(i + 1).join("."))
    .filter((parent) => parent === zone || parent.endsWith(`.${zone}`));
}

function textIn(type: DnsRecord["type"], data: Buffer, inner: string): string {
  if (type === "TXT") return textOf(data) ?? "";
  return type === "MX" && data.length > 2 ? `${data.readUInt16BE(0)} ${inner}` : inner;
}

function decide(record: DnsRecord, standing: Standing): Pick<Change, "act" | "why"> {
  const { name, type, value } = record;
  // The next record at the name would take the wildcard's answer away from it.
  if (standing.given) return { act: "add", why: "a wildcard gives the same" };
  if (type === "CNAME") {
    if (standing.alias === value) return there;
    if (standing.alias !== null) return conflict(`${name} is an alias of ${printable(standing.alias)}`);
    return standing.taken ? conflict(`${name} has other records, beside which no CNAME can stand`) : add;
  }
  if (standing.alias !== null)
    return conflict(
      `${name} is an alias (CNAME) of ${printable(standing.alias)}, beside which nothing can stand`,
    );
  const texts = standing.records.map(({ text }) => text);
  switch (record.purpose) {
    case "dkim":
      if (texts.length === 0) return add;
      return verifyDkim(record, texts).status === "ok" ? there : conflict(`${name} has another TXT record`);
    case "spf":
      return decideSpf(record, texts);
    case "dmarc":
      if (verifyDmarc(record, texts).status === "ok") return { act: "keep", why: "it has a policy" };
      return texts.some((text) => /^v\s*=\s*DMARC1/i.test(text))
        ? conflict(`${name} has another DMARC record`)
        : add;
    case "return_path":
      if (texts.length === 0) return add;
      return texts.every((text) => text.split(" ")[1] === value.split(" ")[1])
        ? there
        : conflict(`${name} has another MX: ${printable(texts.join(", "))}`);
    case "tracking":
      throw new Error(`a ${type} record of a tracking name`);
  }
}

/** Two SPF records make both void (RFC 7208 §4.5). */
function decideSpf({ name, value }: DnsRecord, texts: readonly string[]): Pick<Change, "act" | "why"> {
  const policies = texts.filter(isSpf);
  if (policies.length === 0) return add;
  if (policies.length === 1 && policies[0] === value) return there;
  if (policies.length === 1 && isOurs(policies[0] ?? "", value))
    return { act: "replace", why: `takes the place of ${policies[0]}` };
  return conflict(`${name} has another SPF record: ${printable(policies.join(" and "))}`);
}

const isSpf = (text: string): boolean => /^v=spf1(?: |$)/i.test(text);

/** Whether this program made it for the same host name, for fewer or other addresses (domains/records.ts). */
function isOurs(text: string, value: string): boolean {
  const [version, host, ...rest] = text.split(" ");
  const [, ownHost] = value.split(" ");
  const addresses = rest.slice(0, -1);
  return (
    version === "v=spf1" &&
    host === ownHost &&
    rest.at(-1) === "-all" &&
    addresses.every((each) => /^ip[46]:[0-9a-f.:]+$/.test(each))
  );
}

/**
 * RFC 2136 §2.4: what was seen is as it was. Of an MX and a CNAME nothing stood there. None for what may be there already:
 * adding it again changes nothing (§3.4.2.2).
 */
function prerequisitesOf({ record, standing }: Change): RecordToWrite[] {
  const { name } = record;
  if (standing.given) return [];
  if (record.type === "CNAME" || standing.synthesised)
    return [{ name, type: types.ANY, class: classes.NONE }];
  const type = codes[record.type];
  const none = (of: number): RecordToWrite => ({ name, type: of, class: classes.NONE });
  if (standing.records.length === 0) return [none(type), none(types.CNAME)];
  return standing.records.map(({ data }) => ({ name, type, class: classes.IN, data }));
}

/** RFC 2136 §2.5. A set has one TTL (RFC 2181 §5.2), so one that stands keeps its own. */
function changesOf({ record, act, standing }: Change): RecordToWrite[] {
  const { name } = record;
  const type = codes[record.type];
  const added: RecordToWrite = {
    name,
    type,
    class: classes.IN,
    ttlSeconds: standing.records[0]?.ttlSeconds ?? ttlSeconds,
    data: dataOf(record),
  };
  const gone = act === "replace" ? standing.records.filter(({ text }) => isSpf(text)) : [];
  return [...gone.map(({ data }) => ({ name, type, class: classes.NONE, data })), added];
}

function dataOf({ type, value }: DnsRecord): Buffer {
  if (type === "TXT") return textData(value);
  if (type === "CNAME") return wireName(value);
  const [preference, exchange = ""] = value.split(" ");
  return Buffer.concat([uint16(Number(preference)), wireName(exchange)]);
}

const add = { act: "add", why: null } as const;
const there = { act: "keep", why: "it is there" } as const;
const conflict = (why: string): Pick<Change, "act" | "why"> => ({ act: "conflict", why });
