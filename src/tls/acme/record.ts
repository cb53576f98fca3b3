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
  /** The certificate that is stored is of another ACME server, which was configured before. */
  elsewhere: boolean;
}

export interface AcmeRecord {
  /** Whose it is: the address of its directory. */
  server: string;
  names: Record<string, NameRecord>;
  directory: { failures: number; error: string | null; nextAt: number | null };
  /** Of tracking names, within the last day. */
  orders: { at: number; account: number }[];
}

const mostKept = 2_000;

export const untried = (): NameRecord => ({
  failures: 0,
  error: null,
  nextAt: null,
  failed: [],
  issued: [],
  elsewhere: false,
});

/** `server`: whose limits count now. The waits for another one are none for it. */
export async function readRecord(file: string, server: string): Promise<AcmeRecord> {
  const text = await readFile(file, "utf8").catch(() => "null");
  let kept: AcmeRecord;
  try {
    kept = recordOf(JSON.parse(text), server);
  } catch {
    kept = recordOf(null, server);
  }
  if (kept.server === server) return kept;
  const names = Object.keys(kept.names).map((name) => [name, { ...untried(), elsewhere: true }]);
  return { ...recordOf(null, server), names: Object.fromEntries(names), orders: kept.orders };
}

export async function keepRecord(file: string, record: AcmeRecord, now: number): Promise<void> {
  const after = (since: number) => (at: number) => at > since && at <= now;
  record.orders = record.orders.filter(({ at }) => after(now - dayMs)(at)).slice(-mostKept);
  for (const one of Object.values(record.names)) {
    one.failed = one.failed.filter(after(now - hourMs));
    one.issued = one.issued.filter(after(now - weekMs));
  }
  await replaceFile(file, `${JSON.stringify(record)}\n`);
}

function recordOf(value: unknown, otherwise: string): AcmeRecord {
  const { server, names, directory, orders } = (value ?? {}) as Partial<AcmeRecord>;
  const known = Object.entries(names ?? {}).slice(0, mostKept);
  return {
    server: typeof server === "string" ? server : otherwise,
    names: Object.fromEntries(
      known.map(([name, one]): [string, NameRecord] => [
        name,
        {
          ...stateOf(one),
          failed: timesOf(one.failed),
          issued: timesOf(one.issued),
          elsewhere: one.elsewhere === true,
        },
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
