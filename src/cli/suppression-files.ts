// Suppression lists of other services, read row by row: which service wrote a file shows in its columns, or by the members of
// its JSON. What those services suppress for a while only (refusals with a code of 4xx) is left out.
import { createReadStream, openSync, readSync, closeSync, statSync, readFileSync } from "node:fs";
import { CsvError, parse } from "csv-parse";
import type { SuppressionReason } from "../model/suppression.ts";
import { usage } from "./fault.ts";
import type { Row } from "./output.ts";

export interface ImportedRow {
  email: string;
  /** null: the file does not say. */
  reason: SuppressionReason | null;
  description: string | null;
  /** Of the file, from 1; of JSON the entry's. */
  line: number;
  /** Why it is left out; null: it is not. */
  skipped: string | null;
  /** How much of the file was read by then, 0 to 1. */
  share: number;
}

interface Service {
  name: string;
  /** The member of a JSON export that has the entries; entries may also be an array by themselves. */
  member?: string;
  /** Columns, or members of an entry, that together tell the service; lower case. */
  marks: readonly string[];
  email: string;
  reasonOf(row: Row): SuppressionReason | null;
  skip?(row: Row): string | null;
  description?: string;
}

const text = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";
const isTemporary = (code: unknown): boolean => text(code).trim().startsWith("4");
const temporary = "a temporary refusal";

/** By the words that the services use. */
function reasonIn(value: unknown): SuppressionReason | null {
  const word = text(value).toLowerCase();
  if (/complain|spam/.test(word)) return "complaint";
  if (/unsub|opt[-_ ]?out/.test(word)) return "unsubscribe";
  if (/bounce|invalid|undeliver|hard_?fail/.test(word)) return "hard_bounce";
  return /manual|customer|admin/.test(word) ? "manual" : null;
}

/** The more telling one first. */
export const services: readonly Service[] = [
  {
    name: "ses",
    member: "SuppressedDestinationSummaries",
    marks: ["emailaddress", "reason"],
    email: "emailaddress",
    reasonOf: (row) => reasonIn(row["reason"]),
  },
  {
    name: "postmark",
    member: "Suppressions",
    marks: ["emailaddress", "suppressionreason"],
    email: "emailaddress",
    reasonOf: (row) => reasonIn(row["suppressionreason"]),
  },
  {
    name: "sendgrid",
    marks: ["status", "reason", "email", "created"],
    email: "email",
    reasonOf: () => "hard_bounce",
    skip: (row) => (isTemporary(row["status"]) ? temporary : null),
    description: "reason",
  },
  {
    name: "sendgrid",
    marks: ["email", "created", "ip"],
    email: "email",
    reasonOf: () => "complaint",
  },
  {
    name: "mailgun",
    member: "items",
    marks: ["address", "code", "error"],
    email: "address",
    reasonOf: () => "hard_bounce",
    skip: (row) => (isTemporary(row["code"]) ? temporary : null),
    description: "error",
  },
  {
    name: "mailgun",
    member: "items",
    marks: ["address", "tags"],
    email: "address",
    reasonOf: () => "unsubscribe",
  },
  {
    name: "resend",
    marks: ["email", "unsubscribed"],
    email: "email",
    reasonOf: () => "unsubscribe",
    skip: (row) => (/^(?:true|1|yes)$/i.test(String(row["unsubscribed"])) ? null : "subscribed"),
  },
  {
    name: "postal",
    marks: ["address", "reason", "type"],
    email: "address",
    reasonOf: (row) => reasonIn(row["reason"]) ?? "hard_bounce",
    skip: (row) => (text(row["type"]) === "recipient" ? null : `of the type ${text(row["type"])}`),
    description: "reason",
  },
  {
    name: "csv",
    marks: ["email"],
    email: "email",
    reasonOf: (row) => reasonIn(row["reason"]),
    description: "description",
  },
  { name: "csv", marks: ["address"], email: "address", reasonOf: (row) => reasonIn(row["reason"]) },
];
export const serviceNames: readonly string[] = ["auto", ...new Set(services.map(({ name }) => name))];

const largestJson = 64 * 1024 * 1024;
const longestDescription = 500;

/** A quote that is never closed takes no more than this. */
const longestRecord = 64 * 1024;

/** `from`: one of `serviceNames`. Throws a usage fault: what was found, what is expected. */
export async function* rowsOfFile(path: string, from: string): AsyncGenerator<ImportedRow> {
  const size = sizeOf(path);
  try {
    if (/^\s*[[{]/.test(beginningOf(path))) yield* rowsOfJson(path, from, size);
    else yield* rowsOfCsv(path, from, size);
  } catch (error) {
    throw faultOf(error, path);
  }
}

function faultOf(error: unknown, path: string): unknown {
  if (error instanceof CsvError)
    return usage(
      `${path}: found no valid CSV up to line ${String(error["lines"])}: ${error.message}`,
      "Often a quotation mark further up is not closed.",
    );
  const unread = error instanceof Error && "syscall" in error;
  return unread ? usage(`found ${path}, but it cannot be read: ${error.message}`) : error;
}

async function* rowsOfCsv(path: string, from: string, size: number): AsyncGenerator<ImportedRow> {
  const parser = parse({
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
    max_record_size: longestRecord,
  });
  const file = createReadStream(path).on("error", (error) => parser.destroy(error));
  file.pipe(parser);
  let names: readonly string[] | null = null;
  let service: Service | null = null;
  for await (const { record, info } of parser as AsyncIterable<{
    record: string[];
    info: { lines: number; bytes: number };
  }>) {
    const share = size === 0 ? 1 : info.bytes / size;
    if (service === null || names === null) {
      const isHeader = !record.some((cell) => cell.includes("@"));
      names = isHeader ? record.map(plainName) : ["email", "reason"];
      service = serviceOf(names, from, path);
      if (isHeader) continue;
    }
    const row: Row = {};
    names.forEach((name, at) => (row[name] = record[at]));
    yield importedOf(row, service, info.lines, share);
  }
}

/** `Email Address` and `email_address` are `emailaddress`; `E-mail` is `email`. */
const plainName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

async function* rowsOfJson(path: string, from: string, size: number): AsyncGenerator<ImportedRow> {
  if (size > largestJson)
    throw usage(
      `${path}: found JSON of ${Math.round(size / 1e6)} MB, expected at most 67 MB; as CSV it may have any size`,
    );
  let body: unknown;
  try {
    body = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw usage(`${path}: found no valid JSON (${error instanceof Error ? error.message : String(error)})`);
  }
  const entries = entriesOf(body);
  if (entries === null)
    throw usage(
      `${path}: found JSON without a list of addresses, expected an array, or ${[...new Set(services.flatMap(({ member }) => member ?? []))].join(", ")}`,
    );
  let service: Service | null = null;
  for (const [at, entry] of entries.entries()) {
    const row: Row = Object.fromEntries(
      Object.entries(entry).map(([name, value]) => [plainName(name), value]),
    );
    service ??= serviceOf(Object.keys(row), from, path);
    yield importedOf(row, service, at + 1, (at + 1) / entries.length);
  }
}

function entriesOf(body: unknown): Row[] | null {
  const isEntry = (value: unknown): value is Row =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (Array.isArray(body))
    return body
      .map((value: unknown) => (typeof value === "string" ? { email: value } : value))
      .filter(isEntry);
  if (!isEntry(body)) return null;
  for (const { member } of services) {
    const list = member === undefined ? null : body[member];
    if (Array.isArray(list)) return list.filter(isEntry);
  }
  return null;
}

function serviceOf(names: readonly string[], from: string, path: string): Service {
  const wanted = services.filter(({ name }) => from === "auto" || name === from || name === "csv");
  const found = wanted.find(({ marks }) => marks.every((mark) => names.includes(mark)));
  if (found) return found;
  const expected = [...new Set(wanted.map(({ marks }) => marks.join(" ")))].join("; ");
  throw usage(
    `${path}: found the columns ${names.slice(0, 12).join(" ") || "of nothing"}, expected those of one line: ${expected}`,
  );
}

function importedOf(
  row: Row,
  { email, reasonOf, skip, description }: Service,
  line: number,
  share: number,
): ImportedRow {
  const about = description === undefined ? "" : text(row[description]).replaceAll(/\s+/g, " ").trim();
  return {
    email: text(row[email]).trim(),
    reason: reasonOf(row),
    description: about === "" ? null : about.slice(0, longestDescription),
    line,
    skipped: skip?.(row) ?? null,
    share,
  };
}

function sizeOf(path: string): number {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts) throw usage(`found ${path}, but the file does not exist`);
  if (!facts.isFile()) throw usage(`found ${path}, which is not a file`);
  return facts.size;
}

function beginningOf(path: string): string {
  const bytes = Buffer.alloc(64);
  const file = openSync(path, "r");
  try {
    return bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, 0)).replace(/^\ufeff/, "");
  } finally {
    closeSync(file);
  }
}
