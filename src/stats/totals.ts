// Sums of totals: what several rows of the statistics came to together.
import { counterNames, type Totals } from "../model/counters.ts";

export const noTotals = (): Totals => Object.fromEntries(counterNames.map((name) => [name, 0])) as Totals;

export function addTotals(a: Totals, b: Totals): Totals {
  return Object.fromEntries(counterNames.map((name) => [name, a[name] + b[name]])) as Totals;
}
