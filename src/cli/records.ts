// DNS records to publish: for a person who copies them into a form, as lines of a zone file (RFC 1035 §5: names absolute,
// TXT values in strings of at most 255 bytes), and as the bodies that DNS providers' own tools take. Nothing that stands in
// the zone already is replaced: a name that has other records of the type, as the SPF record of a domain often has, is refused there.
import type { Cli } from "./cli.ts";
import type { Row } from "./output.ts";
import { cell } from "./text.ts";

/** Those of a domain. */
export function recordsOf(domain: Row): Row[] {
  const records = domain["records"];
  return Array.isArray(records) ? (records as Row[]) : [];
}

/** Values in full, each on a line of its own: they are there to be copied. */
export function showRecords(cli: Cli, records: Row[]): void {
  for (const record of records) {
    const { type, name, purpose, required, status, value, issue } = record;
    const facts = [purpose, required === true ? "required" : "optional", status]
      .map(cell)
      .filter((fact) => fact !== "");
    cli.out.line(`${cell(type)}  ${cell(name)}  (${facts.join(", ")})`);
    cli.out.line(`     ${cell(value)}`);
    if (typeof issue === "string") cli.out.line(`     ${issue}`);
  }
}

interface DnsRecord {
  type: string;
  name: string;
  /** Of an MX: `10 mail.acme.example`. */
  value: string;
}

const ttlSeconds = 3600;

/** What each format makes of the records. */
const formats: Record<string, (records: readonly DnsRecord[]) => string> = {
  bind: (records) =>
    records
      .map(
        ({ type, name, value }) => `${absolute(name)}\t${ttlSeconds}\tIN\t${type}\t${presented(type, value)}`,
      )
      .join("\n"),
  cloudflare: (records) => inJson({ posts: records.map(cloudflareRecord) }),
  route53: (records) => {
    const sets = Map.groupBy(records, ({ type, name }) => `${name} ${type}`);
    return inJson({
      Changes: Array.from(sets.values(), (own) => ({
        Action: "CREATE",
        ResourceRecordSet: {
          Name: absolute(own[0]?.name ?? ""),
          Type: own[0]?.type,
          TTL: ttlSeconds,
          ResourceRecords: own.map(({ type, value }) => ({ Value: presented(type, value) })),
        },
      })),
    });
  },
  terraform: (records) => {
    const entries = records.map(({ type, name, value }) => {
      const [priority, target] = mxOf(type, value);
      const parts = [`type = ${hclText(type)}`, `name = ${hclText(name)}`, `value = ${hclText(target)}`];
      return `    { ${[...parts, `priority = ${priority}`, `ttl = ${ttlSeconds}`].join(", ")} },`;
    });
    return `locals {\n  svc_records = [\n${entries.join("\n")}\n  ]\n}`;
  },
};

export const recordFormats: readonly string[] = Object.keys(formats);

/** Throws for a format that is none of `recordFormats`. */
export function recordsIn(format: string, records: readonly Row[]): string {
  const make = formats[format];
  if (!make) throw new Error(`no format ${format}`);
  return make(
    records.map((record) => ({
      type: cell(record["type"]),
      name: cell(record["name"]),
      value: cell(record["value"]),
    })),
  );
}

/** Of POST /zones/{zone_id}/dns_records/batch. A tracking name that Cloudflare's proxy answered for would reach it, not us. */
function cloudflareRecord({ type, name, value }: DnsRecord): object {
  const [priority, target] = mxOf(type, value);
  return {
    type,
    name,
    content: type === "TXT" ? strings(value) : target,
    ttl: ttlSeconds,
    ...(priority === "null" ? {} : { priority: Number(priority) }),
    ...(type === "CNAME" ? { proxied: false } : {}),
  };
}

const inJson = (value: object): string => JSON.stringify(value, null, 2);

/** A string of HCL, in which ${ and %{ begin a template. */
const hclText = (text: string): string => JSON.stringify(text).replaceAll(/[$%](?=\{)/g, "$&$&");

/** The preference of an MX, `null` for other types, and what it leads to. */
function mxOf(type: string, value: string): [priority: string, target: string] {
  const [, priority, target] = (type === "MX" && /^(\d+) +(\S+)$/.exec(value)) || [];
  return priority === undefined || target === undefined ? ["null", value] : [priority, target];
}

/** As in a zone file. */
const presented = (type: string, value: string): string =>
  type === "TXT" ? strings(value) : absolute(value);

function absolute(name: string): string {
  return name.endsWith(".") ? name : `${name}.`;
}

function strings(value: string): string {
  const escaped = value.replace(/[\\"]/g, (character) => `\\${character}`);
  const parts = escaped.match(/(?:\\.|[^\\]){1,120}/g) ?? [""];
  return parts.map((part) => `"${part}"`).join(" ");
}
