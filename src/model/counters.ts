// What is counted: the names of the counters. Of whom and of what: facts.ts, statistics.ts. Which event raises which:
// events/catalog.ts.

export interface Counter {
  /** The totals of the API that show it: those of mail, of the webhooks' attempts, or none. */
  in: readonly ("mail" | "webhooks")[];
  /** What it counts, where its name does not say it. */
  meaning?: string;
}

/** In the order of the columns; new ones go to the end. */
export const counters = {
  accepted: { in: ["mail"] },
  delivered: { in: ["mail", "webhooks"] },
  deferred: {
    in: ["mail"],
    meaning: "Attempts that were deferred; a recipient may be deferred many times.",
  },
  bounced: { in: ["mail"] },
  bouncedHard: { in: ["mail"] },
  bouncedSoft: { in: ["mail"] },
  complained: { in: ["mail"] },
  opened: { in: ["mail"] },
  uniqueOpened: { in: ["mail"], meaning: "First opens of a recipient, without those by machines." },
  clicked: { in: ["mail"] },
  uniqueClicked: { in: ["mail"], meaning: "First clicks of a recipient, without those by machines." },
  unsubscribed: { in: ["mail"] },
  suppressedRejections: {
    in: ["mail"],
    meaning: "Recipients that were refused because they are suppressed.",
  },
  attempts: { in: ["webhooks"] },
  failed: { in: ["webhooks"] },
  deadLettered: { in: ["webhooks"] },
  complainedUnconfirmed: {
    in: [],
    meaning: "The part of `complained` that does not count for the abuse guard.",
  },
} as const satisfies Record<string, Counter>;

export type CounterName = keyof typeof counters;
export type Totals = Record<CounterName, number>;
export const counterNames = Object.keys(counters) as CounterName[];

export type TotalsKind = Counter["in"][number];
export type CounterOf<Of extends TotalsKind> = {
  [Name in CounterName]: Of extends (typeof counters)[Name]["in"][number] ? Name : never;
}[CounterName];

/** The counters that the API shows in the totals of mail, or of webhooks. */
export function countersIn<Of extends TotalsKind>(of: Of): CounterOf<Of>[] {
  const shown: [string, Counter][] = Object.entries(counters);
  return shown.filter(([, counter]) => counter.in.includes(of)).map(([name]) => name as CounterOf<Of>);
}

/** Counters as bits, which is how an event names those that it raises. */
export function counterMask(names: readonly CounterName[]): number {
  return names.reduce((mask, name) => mask | (1 << counterNames.indexOf(name)), 0);
}
