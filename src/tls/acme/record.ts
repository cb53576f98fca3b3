// What was ordered, what failed and when it is tried again, in <dataDir>/tls/acme.json: a program that is started again
// and again must not spend the limits of the ACME server. An unreadable file counts as none: the waits start again.
import { readFile } from "node:fs/promises";
import { dayMs, hourMs } from "../../clock.ts";
import { replaceFile } from "../stored-pair.ts";
import { said } from "./error.ts";
import { weekMs } from "./schedule.ts";

export interface NameRecord {
  /** In a row. */
  failures: number;
  /** Why the last order failed; null: it did not. */
  error: string | null;
  /** Not tried before; null: nothing holds it back. */
  nextAt: number | null;
  /** Failures within the last hour. */
  failed: number[];
  /** Certificates within the last week. */
  issued: number[];
}

export interface AcmeRecord {
  names: Record<string, NameRecord>;
  directory: { failures: number; error: string | null; nextAt: number | null };
  /** Of tracking names, within the last day. */
  orders: { at: number; account: number }[];
}

const mostKept = 2_000;

export const untried = (): NameRecord => ({ failures: 0, error: null, nextAt: null, failed: [], issued: [] });

export async function readRecord(file: string): Promise<AcmeRecord> {
  const text = await readFile(file, "utf8").catch(() => "null");
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return recordOf(null);
  }
}

/** `isKept`: of a name that nothing is ordered for any more, nothing is kept. */
export async function keepRecord(
  file: string,
  record: AcmeRecord,
  now: number,
  isKept: (name: string) => boolean,
): Promise<void> {
  const after = (since: number) => (at: number) => at > since && at <= now;
  record.orders = record.orders.filter(({ at }) => after(now - dayMs)(at)).slice(-mostKept);
  for (const [name, one] of Object.entries(record.names)) {
    one.failed = one.failed.filter(after(now - hourMs));
    one.issued = one.issued.filter(after(now - weekMs));
    if (!isKept(name)) delete record.names[name];
  }
  await replaceFile(file, `${JSON.stringify(record)}\n`);
}

function recordOf(value: unknown): AcmeRecord {
  const { names, directory, orders } = (value ?? {}) as Partial<AcmeRecord>;
  const known = Object.entries(names ?? {}).slice(0, mostKept);
  return {
    names: Object.fromEntries(
      known.map(([name, one]): [string, NameRecord] => [
        name,
        { ...stateOf(one), failed: timesOf(one.failed), issued: timesOf(one.issued) },
      ]),
    ),
    directory: stateOf(directory),
    orders: (Array.isArray(orders) ? orders : []).filter(
      (one) => Number.isFinite(one?.at) && Number.isFinite(one?.account),
    ),
  };
}

function stateOf(value: Partial<NameRecord> | undefined): AcmeRecord["directory"] {
  const { failures, error, nextAt } = value ?? {};
  return {
    failures: Number.isInteger(failures) ? Number(failures) : 0,
    error: typeof error === "string" ? said(error) : null,
    nextAt: Number.isFinite(nextAt) ? Number(nextAt) : null,
  };
}

const timesOf = (value: unknown): number[] =>
  Array.isArray(value) ? value.filter((at): at is number => Number.isFinite(at)) : [];
