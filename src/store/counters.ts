// Counts as the store gathers and folds them: sums by a counter's place, and the rows of the statistics that something
// with these facts (model/facts.ts) is counted in. Names of counters: model/counters.ts; kinds of rows:
// model/statistics.ts.
import { counterNames, type Totals } from "../model/counters.ts";
import { quarterMs, statsKinds, statsScopes, type StatsKind } from "../model/statistics.ts";

/** A sum for each counter, by its place. */
export type Counts = number[];

/** The columns of a row of statistics that hold them, in their order. */
export const counterColumns = counterNames.map((name) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

export const noCounts = (): Counts => counterNames.map(() => 0);

export function totalsOf(counts: Counts): Totals {
  return Object.fromEntries(counterNames.map((name, place) => [name, counts[place] ?? 0])) as Totals;
}

export function addCounts(sum: Counts, more: Counts): void {
  for (let place = 0; place < sum.length; place++) sum[place] = (sum[place] ?? 0) + (more[place] ?? 0);
}

/** Something to be counted, as the writer gathers it. */
export interface Counted {
  facts: string;
  /** When it happened, milliseconds since 1970. */
  at: number;
  /** Of counterMask. */
  counters: number;
  times: number;
}

export const quartersADay = 96;
/** Quarter hours since 1970 UTC: every time zone's day begins with one of them. */
export const quarterOf = (ms: number): number => Math.floor(ms / quarterMs);
export const dayOfQuarter = (quarter: number): number => Math.floor(quarter / quartersADay);

/** A row of a day, but for the day. */
export interface StatsRow {
  accountKey: number;
  test: number;
  kind: number;
  scope: number;
  scopeKey: string;
  key: string;
}

/**
 * The same facts with the keys that `place` answers. Asked for what mail names and has no end, recipient domains, providers
 * and tags, within the list of the domain that is sent from.
 */
export function placeKeys(
  facts: string,
  place: (list: Omit<StatsRow, "key">, key: string) => string,
): string {
  const parts = facts.split("\n");
  const [account, test, endpoint, recipientDomain = "", domain = "", , , provider = "", , tags = "[]"] =
    parts;
  if (endpoint !== "") return facts;
  const scope = domain === "" ? statsScopes.all : statsScopes.domain;
  const of = { accountKey: Number(account), test: Number(test), scope, scopeKey: domain };
  const placed = (kind: StatsKind, key: string): string =>
    key === "" ? key : place({ ...of, kind: statsKinds[kind] }, key);
  parts[3] = placed("recipientDomain", recipientDomain);
  parts[7] = placed("provider", provider);
  if (tags !== "[]")
    parts[9] = JSON.stringify([...new Set((JSON.parse(tags) as string[]).map((tag) => placed("tag", tag)))]);
  return parts.join("\n");
}

/** The rows that something with these facts is counted in. */
export function rowsOf(facts: string): StatsRow[] {
  const [account, test, endpoint = "", recipientDomain, domain, pool, ip, provider, bounce, tags] =
    facts.split("\n");
  const base = { accountKey: Number(account), test: Number(test) };
  const all = { ...base, scope: statsScopes.all, scopeKey: "" };
  if (endpoint !== "") return [{ ...all, kind: statsKinds.webhook, key: endpoint }];
  const parts: [StatsKind, string | undefined][] = [
    ["domain", domain],
    ["ipPool", pool],
    ["ip", ip],
    ["provider", provider],
    ["recipientDomain", recipientDomain],
    ["bounce", bounce],
  ];
  for (const tag of new Set(JSON.parse(tags ?? "[]") as string[])) parts.push(["tag", tag]);
  const rows: StatsRow[] = [{ ...all, kind: statsKinds.account, key: "" }];
  for (const [kind, key] of parts) {
    if (!key) continue;
    rows.push({ ...all, kind: statsKinds[kind], key });
    if (domain && kind !== "domain")
      rows.push({ ...base, kind: statsKinds[kind], scope: statsScopes.domain, scopeKey: domain, key });
    if (pool && kind !== "ipPool")
      rows.push({ ...base, kind: statsKinds[kind], scope: statsScopes.ipPool, scopeKey: pool, key });
  }
  return rows;
}
