// What Prometheus reads. Counted is what the statistics count (events/catalog.ts), mail of test keys left out, from 0 at
// each start; the page itself (page.ts) is loaded when somebody first asks.
import type { Clock } from "../clock.ts";
import { counterNames } from "../model/counters.ts";
import type { Store } from "../store/store.ts";
import type { Facts } from "./catalog.ts";

export interface MetricsDeps {
  store: Pick<Store, "onCommit" | "queueCounts" | "pausedAccounts" | "health">;
  clock: Clock;
  version: string;
  /** What else the gauges show. */
  others(): Pick<
    Facts,
    "maintenance" | "poolProblems" | "listings" | "certificate" | "failingCertificates" | "backupAt"
  >;
}

export interface Metrics {
  /** In Prometheus' text format. */
  text(): Promise<string>;
  stop(): void;
}

export function createMetrics({ store, clock, version, others }: MetricsDeps): Metrics {
  const sums = counterNames.map(() => 0);
  const stop = store.onCommit(({ counted }) => {
    counted?.forEach((by, place) => (sums[place] = (sums[place] ?? 0) + by));
  });
  const facts = async (): Promise<Facts> => {
    const [queue, paused, health] = await Promise.all([
      store.queueCounts(),
      store.pausedAccounts(),
      store.health(),
    ]);
    return { ...others(), version, now: clock.now(), queue, health, pausedAccounts: paused.length };
  };
  /** Who asks meanwhile gets the same page: the counts of a long queue take the store's reader a while, and it has others. */
  let under: Promise<string> | null = null;
  let page: (() => Promise<string>) | null = null;
  return {
    async text() {
      const { createPage } = await import("./page.ts");
      page ??= createPage(facts, sums);
      under ??= page().finally(() => (under = null));
      return under;
    },
    stop,
  };
}
