// What is counted: the names of the counters. Of whom and of what: facts.ts, statistics.ts. Which event raises which:
// events/catalog.ts.

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

/** Counters as bits, which is how an event names those that it raises. */
export function counterMask(names: readonly CounterName[]): number {
  return names.reduce((mask, name) => mask | (1 << counterNames.indexOf(name)), 0);
}
