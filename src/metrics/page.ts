// The page that Prometheus reads: this program's metrics (catalog.ts), and about the process and its runtime those that
// prom-client gives to all programs of Node.js, under the same names.
import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import { counterNames } from "../model/counters.ts";
import { counterEntries, gaugeEntries, type Facts } from "./catalog.ts";

/** `sums`: of each counter since the start, in the order of `counterNames`. Throws what `facts` throws. */
export function createPage(facts: () => Promise<Facts>, sums: readonly number[]): () => Promise<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const byName = new Map<string, Counter>();
  const counterOf = (name: string, help: string, labels: object): Counter => {
    const known = byName.get(name);
    if (known) return known;
    const made = new Counter({ name, help, labelNames: Object.keys(labels), registers: [registry] });
    byName.set(name, made);
    return made;
  };
  const counters = counterEntries.map(({ of, name, help, labels = {} }) => ({
    counter: counterOf(name, help, labels),
    labels,
    place: counterNames.indexOf(of),
  }));
  const gauges = new Map<string, Gauge>();

  return async () => {
    const now = await facts();
    for (const { counter } of counters) counter.reset();
    for (const { counter, labels, place } of counters) counter.inc(labels, sums[place]);
    for (const { name, help, read } of gaugeEntries)
      for (const { labels = {}, value } of read(now)) {
        const labelNames = Object.keys(labels);
        const gauge = gauges.get(name) ?? new Gauge({ name, help, labelNames, registers: [registry] });
        gauges.set(name, gauge);
        gauge.set(labels, value);
      }
    return registry.metrics();
  };
}
