// What is counted, and of what: the names of the counters, and the facts that say which rows of the statistics a
// count belongs to. Facts are one line of text each, made where the thing happens, so that handing them to the writer
// and finding equal ones costs little; they are taken apart when counts are folded (stats-fold.ts). Which event
// raises which counters: events/counted.ts.

/**
 * In the order of the columns; new ones go to the end. `attempts`, `failed` and `deadLettered`, with `delivered`, are
 * those of webhooks. `complainedUnconfirmed` is the part of `complained` that does not count for the abuse guard.
 */
export const counterNames = [
  "accepted",
  "delivered",
  "deferred",
  "bounced",
  "bouncedHard",
  "bouncedSoft",
  "complained",
  "opened",
  "uniqueOpened",
  "clicked",
  "uniqueClicked",
  "unsubscribed",
  "suppressedRejections",
  "attempts",
  "failed",
  "deadLettered",
  "complainedUnconfirmed",
] as const;

export type CounterName = (typeof counterNames)[number];
export type Totals = Record<CounterName, number>;

/** A sum for each counter, by its place. */
export type Counts = number[];

export const noCounts = (): Counts => counterNames.map(() => 0);

export function totalsOf(counts: Counts): Totals {
  return Object.fromEntries(counterNames.map((name, place) => [name, counts[place] ?? 0])) as Totals;
}

export const noTotals = (): Totals => totalsOf([]);

export function addTotals(a: Totals, b: Totals): Totals {
  return Object.fromEntries(counterNames.map((name) => [name, a[name] + b[name]])) as Totals;
}

export function addCounts(sum: Counts, more: Counts): void {
  for (let place = 0; place < sum.length; place++) sum[place] = (sum[place] ?? 0) + (more[place] ?? 0);
}

/** Counters as bits, which is how an event names those that it raises. */
export function counterMask(names: readonly CounterName[]): number {
  return names.reduce((mask, name) => mask | (1 << counterNames.indexOf(name)), 0);
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

export const quarterMs = 15 * 60 * 1000;
export const quartersADay = 96;
/** Quarter hours since 1970 UTC: every time zone's day begins with one of them. */
export const quarterOf = (ms: number): number => Math.floor(ms / quarterMs);
export const dayOfQuarter = (quarter: number): number => Math.floor(quarter / quartersADay);

export interface MailFacts {
  accountKey: number;
  test: boolean;
  /** The domain that is sent from; null where it is not known. */
  domain: string | null;
  pool: string | null;
  tagsJson: string;
  recipientDomain: string;
  ip: string | null;
  /** Group of MX hosts. */
  provider: string | null;
  /** Of a bounce only. */
  classification: string | null;
}

/** No part can hold a line end: names of hosts, domains and pools have none, and JSON text writes them as \n. */
export function mailFacts(f: MailFacts): string {
  return `${f.accountKey}\n${f.test ? 1 : 0}\n\n${f.recipientDomain}\n${f.domain ?? ""}\n${f.pool ?? ""}\n${f.ip ?? ""}\n${f.provider ?? ""}\n${f.classification ?? ""}\n${f.tagsJson}`;
}

export function webhookFacts(accountKey: number, test: boolean, endpointId: string): string {
  return `${accountKey}\n${test ? 1 : 0}\n${endpointId}`;
}

/** What rows are about. */
export const statsKinds = {
  account: 0,
  tag: 1,
  domain: 2,
  ipPool: 3,
  ip: 4,
  provider: 5,
  recipientDomain: 6,
  bounce: 7,
  webhook: 8,
} as const;
export type StatsKind = keyof typeof statsKinds;

/** Within what rows of a kind are counted: all of the account, one sending domain, one pool. */
export const statsScopes = { all: 0, domain: 1, ipPool: 2 } as const;
export type StatsScope = keyof typeof statsScopes;

/** A row of a day, but for the day. */
export interface StatsRow {
  accountKey: number;
  test: number;
  kind: number;
  scope: number;
  scopeKey: string;
  key: string;
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
