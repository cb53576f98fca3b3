// What Prometheus reads. Counted is what the statistics count (events/catalog.ts), mail of test keys left out, from 0 at
// each start; the page itself (page.ts) is loaded when somebody first asks.
import type { Clock } from "../clock.ts";
import { counterNames } from "../model/counters.ts";
import type { Store } from "../store/store.ts";

export interface MetricsDeps {
  store: Pick<Store, "onCommit" | "queueCounts" | "pausedAccounts" | "health">;
  clock: Clock;
  version: string;
  /** New mail is refused meanwhile. */
  inMaintenance(): boolean;
  poolProblems(): readonly unknown[];
  listings(): readonly unknown[];
  /** The listeners' chain, PEM; null: they have none. */
  certificate(): string | null;
}

export interface Metrics {
  /** In Prometheus' text format. */
  text(): Promise<string>;
  stop(): void;
}

export function createMetrics(deps: MetricsDeps): Metrics {
  const sums = counterNames.map(() => 0);
  const stop = deps.store.onCommit(({ counted }) => {
    counted?.forEach((by, place) => (sums[place] = (sums[place] ?? 0) + by));
  });
  let page: (() => Promise<string>) | null = null;
  return {
    async text() {
      const { createPage } = await import("./page.ts");
      page ??= createPage(deps, sums);
      return page();
    },
    stop,
  };
}
