// The metrics of this program: an entry each, from which the page and the documentation derive. Labels have values of
// fixed sets alone.
import { X509Certificate } from "node:crypto";
import type { CounterName } from "../model/counters.ts";
import type { QueueCounts } from "../model/queue.ts";
import type { Health } from "../store/store.ts";

/** What the gauges are made of. */
export interface Facts {
  version: string;
  now: number;
  queue: QueueCounts;
  health: Health;
  maintenance: boolean;
  pausedAccounts: number;
  poolProblems: number;
  listings: number;
  /** The listeners' chain, PEM; null: they have none. */
  certificate: string | null;
  /** Certificates that could not be renewed or read. */
  failingCertificates: { host: number; tracking: number };
  /** When the newest backup was begun; null: there is none. */
  backupAt: number | null;
}

export interface CounterEntry {
  of: CounterName;
  name: string;
  help: string;
  labels?: Record<string, string>;
}

export interface GaugeEntry {
  name: string;
  help: string;
  /** A sample for each value of its labels. */
  read(facts: Facts): { labels?: Record<string, string>; value: number }[];
}

const bounced = { name: "svc_recipients_bounced_total", help: "Recipients that bounced" };

export const counterEntries: readonly CounterEntry[] = [
  { of: "accepted", name: "svc_recipients_accepted_total", help: "Recipients of accepted messages" },
  { of: "delivered", name: "svc_recipients_delivered_total", help: "Recipients that a receiver has taken" },
  { of: "deferred", name: "svc_attempts_deferred_total", help: "Attempts that were deferred" },
  { of: "bouncedHard", ...bounced, labels: { type: "hard" } },
  { of: "bouncedSoft", ...bounced, labels: { type: "soft" } },
  { of: "complained", name: "svc_complaints_total", help: "Complaints" },
  { of: "opened", name: "svc_opens_total", help: "Opens, those by machines included" },
  { of: "clicked", name: "svc_clicks_total", help: "Clicks, those by machines included" },
  { of: "unsubscribed", name: "svc_unsubscribes_total", help: "Recipients that unsubscribed" },
  {
    of: "suppressedRejections",
    name: "svc_recipients_suppressed_total",
    help: "Recipients that were refused because they are suppressed",
  },
  {
    of: "attempts",
    name: "svc_webhook_attempts_total",
    help: "Attempts to post an event to a webhook endpoint",
  },
  {
    of: "failed",
    name: "svc_webhook_attempts_failed_total",
    help: "Those that the endpoint did not answer with 2xx",
  },
  {
    of: "deadLettered",
    name: "svc_webhook_dead_letters_total",
    help: "Events that an endpoint never took",
  },
];

const one = (value: number | boolean): { value: number }[] => [{ value: Number(value) }];

export const gaugeEntries: readonly GaugeEntry[] = [
  {
    name: "svc_build_info",
    help: "Always 1; the label says which version runs",
    read: ({ version }) => [{ labels: { version }, value: 1 }],
  },
  {
    name: "svc_ready",
    help: "1 while new mail is taken: as /readyz answers",
    read: ({ health, maintenance }) => one(health.writable && !health.full && !maintenance),
  },
  {
    name: "svc_queue_recipients",
    help: "Recipients that have no final state yet",
    read: ({ queue }) =>
      (["scheduled", "queued", "deferred", "sending", "held"] as const).map((status) => ({
        labels: { status },
        value: queue[status],
      })),
  },
  {
    name: "svc_queue_oldest_due_seconds",
    help: "How long the recipient that waits longest has been due",
    read: ({ queue, now }) =>
      one(queue.oldestDueAt === null ? 0 : Math.max(0, now - queue.oldestDueAt) / 1000),
  },
  {
    name: "svc_store_writable",
    help: "0 since the last write to the database was refused",
    read: ({ health }) => one(health.writable),
  },
  {
    name: "svc_store_free_bytes",
    help: "Free space of the file system of the data",
    read: ({ health }) => one(health.freeBytes),
  },
  {
    name: "svc_accounts_paused",
    help: "Accounts whose sending is paused",
    read: ({ pausedAccounts }) => one(pausedAccounts),
  },
  {
    name: "svc_pool_problems",
    help: "IP pools with addresses that cannot be used",
    read: ({ poolProblems }) => one(poolProblems),
  },
  {
    name: "svc_blacklist_listings",
    help: "Sending addresses on blocklists, each counted once for each blocklist",
    read: ({ listings }) => one(listings),
  },
  {
    name: "svc_certificate_not_after_seconds",
    help: "When the listeners' certificate expires, Unix time",
    read: ({ certificate }) =>
      certificate === null ? [] : one(new X509Certificate(certificate).validToDate.getTime() / 1000),
  },
  {
    name: "svc_certificates_failing",
    help: "Certificates that could not be renewed or read, of the host or of tracking names",
    read: ({ failingCertificates: { host, tracking } }) => [
      { labels: { names: "host" }, value: host },
      { labels: { names: "tracking" }, value: tracking },
    ],
  },
  {
    name: "svc_backup_newest_timestamp_seconds",
    help: "When the newest backup was begun, Unix time; absent while there is none",
    read: ({ backupAt }) => (backupAt === null ? [] : one(backupAt / 1000)),
  },
];
