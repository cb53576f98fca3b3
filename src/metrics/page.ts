// The page that Prometheus reads, by its conventions: gauges are read as they are asked for, labels have values of fixed
// sets alone. About the process and its runtime: the names that prom-client gives to all programs of Node.js.
import { X509Certificate } from "node:crypto";
import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import { counterNames, type CounterName } from "../model/counters.ts";
import type { MetricsDeps } from "./metrics.ts";

/** The name and label that each counter is shown by, and what it counts. Those that no operator needs are left out. */
const shown: Partial<Record<CounterName, { name: string; help: string; labels?: Record<string, string> }>> = {
  accepted: { name: "svc_recipients_accepted_total", help: "Recipients of accepted messages" },
  delivered: { name: "svc_recipients_delivered_total", help: "Recipients that a receiver has taken" },
  deferred: { name: "svc_attempts_deferred_total", help: "Attempts that were deferred" },
  bouncedHard: {
    name: "svc_recipients_bounced_total",
    help: "Recipients that bounced",
    labels: { type: "hard" },
  },
  bouncedSoft: {
    name: "svc_recipients_bounced_total",
    help: "Recipients that bounced",
    labels: { type: "soft" },
  },
  complained: { name: "svc_complaints_total", help: "Complaints" },
  opened: { name: "svc_opens_total", help: "Opens, those by machines included" },
  clicked: { name: "svc_clicks_total", help: "Clicks, those by machines included" },
  unsubscribed: { name: "svc_unsubscribes_total", help: "Recipients that unsubscribed" },
  suppressedRejections: {
    name: "svc_recipients_suppressed_total",
    help: "Recipients that were refused because they are suppressed",
  },
  attempts: { name: "svc_webhook_attempts_total", help: "Attempts to post an event to an endpoint" },
  failed: { name: "svc_webhook_attempts_failed_total", help: "Attempts that an endpoint did not take" },
  deadLettered: { name: "svc_webhook_dead_letters_total", help: "Events that an endpoint never took" },
};

/** `sums`: of each counter since the start. */
export function createPage(deps: MetricsDeps, sums: readonly number[]): () => Promise<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const setCounters = createCounters(registry, sums);
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] });

  gauge("svc_build_info", "The version that runs", ["version"]).set({ version: deps.version }, 1);
  const queue = gauge("svc_queue_recipients", "Recipients whose delivery is not over, by state", ["status"]);
  const oldest = gauge(
    "svc_queue_oldest_due_seconds",
    "How long ago the recipient that waits longest came due",
  );
  const ready = gauge("svc_ready", "1 where new mail is taken: as /readyz answers");
  const writable = gauge("svc_store_writable", "0 since the last write to the database was refused");
  const free = gauge("svc_store_free_bytes", "Free space of the file system of the data");
  const paused = gauge("svc_accounts_paused", "Accounts whose sending is paused");
  const pools = gauge("svc_pool_problems", "IP pools with addresses that cannot be used");
  const listed = gauge(
    "svc_blacklist_listings",
    "Sending addresses on blocklists, counted once for each blocklist",
  );
  const expires = gauge(
    "svc_certificate_not_after_seconds",
    "When the listeners' certificate expires, Unix time",
  );

  return async () => {
    const [counts, accounts, health] = await Promise.all([
      deps.store.queueCounts(),
      deps.store.pausedAccounts(),
      deps.store.health(),
    ]);
    for (const status of ["scheduled", "queued", "deferred", "sending", "held"] as const)
      queue.set({ status }, counts[status]);
    oldest.set(counts.oldestDueAt === null ? 0 : Math.max(0, deps.clock.now() - counts.oldestDueAt) / 1000);
    ready.set(health.writable && !health.full && !deps.inMaintenance() ? 1 : 0);
    writable.set(health.writable ? 1 : 0);
    free.set(health.freeBytes);
    paused.set(accounts.length);
    pools.set(deps.poolProblems().length);
    listed.set(deps.listings().length);
    const certificate = deps.certificate();
    if (certificate !== null) expires.set(new X509Certificate(certificate).validToDate.getTime() / 1000);
    setCounters();
    return registry.metrics();
  };
}

function createCounters(registry: Registry, sums: readonly number[]): () => void {
  const byName = new Map<string, Counter>();
  for (const { name, help, labels = {} } of Object.values(shown))
    if (!byName.has(name))
      byName.set(name, new Counter({ name, help, labelNames: Object.keys(labels), registers: [registry] }));
  return () => {
    for (const counter of byName.values()) counter.reset();
    counterNames.forEach((of, place) => {
      const entry = shown[of];
      if (entry) byName.get(entry.name)?.inc(entry.labels ?? {}, sums[place]);
    });
  };
}
