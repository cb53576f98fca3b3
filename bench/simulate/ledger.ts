// What is counted while a day is played, for each provider and for the tail together.
import { hourMs, minuteMs } from "../../src/clock.ts";
import { providerNames, type Answer } from "./receivers.ts";

export const rowNames = [...providerNames, "others"] as const;
/** The row of a domain of traffic.ts. */
export const rowOf = (domain: number): number => Math.min(domain, providerNames.length);

export const sampleMs = 5 * minuteMs;

export interface Row {
  accepted: number;
  delivered: number;
  bounced: number;
  expired: number;
  /** Not done when the simulation ended. */
  left: number;
  /** Attempts by what was answered. */
  attempts: Record<Answer, number>;
  retries: number;
  /** Attempts from addresses of which all had sent what their warm-up allows. */
  overCap: number;
  /** Messages that are accepted and not done, each `sampleMs` from midnight. */
  backlog: number[];
  /** Of these, those that are due and wait for a slot. */
  due: number[];
  /** Milliseconds from midnight until less than a thousandth of what can be delivered waits, for good. */
  drainedAt: number;
  /** Milliseconds from acceptance to delivery, the 50th, 95th and 99th of a hundred. */
  delays: { p50: number; p95: number; p99: number };
}

export type Done = "delivered" | "bounced" | "expired";

/** The rows by name, and all of them together. */
export interface Day {
  rows: { name: string; row: Row }[];
  total: Row;
}

interface Counts extends Omit<Row, "delays" | "left"> {
  waiting: number;
  /** Of these, those that can be delivered. */
  deliverable: number;
  dueNow: number;
  histogram: Uint32Array;
}

export interface Ledger {
  accepted(domain: number, deliverable: boolean): void;
  /** By how much the messages that are due and wait for a slot became more. */
  due(domain: number, by: number): void;
  overCap(domain: number): void;
  attempted(domain: number, attempt: number, answer: Answer): void;
  done(domain: number, how: Done, deliverable: boolean, delayMs: number, now: number): void;
  /** Takes the samples up to `now`. */
  sampleUntil(now: number): void;
  day(): Day;
}

/** Buckets of a histogram by a fortieth of a decade: a quantile is right within 6 %. */
const bucketsADecade = 40;
const bucketOf = (ms: number): number => Math.round(Math.log10(1 + ms) * bucketsADecade);
const bucketMs = (bucket: number): number => 10 ** (bucket / bucketsADecade) - 1;

export function createLedger(): Ledger {
  const all = rowNames.map(newCounts);
  const of = (domain: number): Counts => all[rowOf(domain)] ?? newCounts();
  let sampledAt = 0;
  return {
    accepted(domain, deliverable) {
      const row = of(domain);
      row.accepted += 1;
      row.waiting += 1;
      if (deliverable) row.deliverable += 1;
    },
    due(domain, by) {
      of(domain).dueNow += by;
    },
    overCap(domain) {
      of(domain).overCap += 1;
    },
    attempted(domain, attempt, answer) {
      const row = of(domain);
      row.attempts[answer] += 1;
      if (attempt > 1) row.retries += 1;
    },
    done(domain, how, deliverable, delayMs, now) {
      const row = of(domain);
      row[how] += 1;
      row.waiting -= 1;
      if (how === "delivered") count(row.histogram, bucketOf(delayMs));
      if (!deliverable) return;
      row.deliverable -= 1;
      if (row.deliverable * 1000 >= row.accepted) row.drainedAt = now;
    },
    sampleUntil(now) {
      for (; sampledAt <= now; sampledAt += sampleMs)
        for (const row of all) {
          row.backlog.push(row.waiting);
          row.due.push(row.dueNow);
        }
    },
    day: () => ({
      rows: rowNames.map((name, i) => ({ name, row: rowOfCounts(all[i] ?? newCounts()) })),
      total: rowOfCounts(sumOf(all)),
    }),
  };
}

function rowOfCounts({
  waiting,
  deliverable: _deliverable,
  dueNow: _dueNow,
  histogram,
  ...row
}: Counts): Row {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(histogram, share));
  return { ...row, left: waiting, delays: { p50: p50 ?? 0, p95: p95 ?? 0, p99: p99 ?? 0 } };
}

function sumOf(all: readonly Counts[]): Counts {
  const sum = newCounts();
  for (const row of all) {
    for (const field of summed) sum[field] += row[field];
    for (const answer of Object.keys(row.attempts) as Answer[]) sum.attempts[answer] += row.attempts[answer];
    for (const field of ["backlog", "due", "histogram"] as const)
      for (const [i, here] of row[field].entries()) sum[field][i] = (sum[field][i] ?? 0) + here;
    sum.drainedAt = Math.max(sum.drainedAt, row.drainedAt);
  }
  return sum;
}

const summed = ["accepted", "delivered", "bounced", "expired", "retries", "overCap", "waiting"] as const;

function newCounts(): Counts {
  return {
    accepted: 0,
    delivered: 0,
    bounced: 0,
    expired: 0,
    attempts: {
      delivered: 0,
      unknown_user: 0,
      unknown_domain: 0,
      mailbox_full: 0,
      greylisted: 0,
      rate_limited: 0,
      timed_out: 0,
      trouble: 0,
    },
    retries: 0,
    overCap: 0,
    backlog: [],
    due: [],
    drainedAt: 0,
    waiting: 0,
    deliverable: 0,
    dueNow: 0,
    histogram: new Uint32Array(bucketOf(1_000 * hourMs) + 1),
  };
}

function count(histogram: Uint32Array, bucket: number): void {
  const last = Math.min(bucket, histogram.length - 1);
  histogram[last] = (histogram[last] ?? 0) + 1;
}

function quantile(histogram: Uint32Array, share: number): number {
  const all = histogram.reduce((sum, here) => sum + here, 0);
  let below = 0;
  for (const [bucket, here] of histogram.entries()) {
    below += here;
    if (below > 0 && below >= share * all) return bucketMs(bucket);
  }
  return 0;
}

export const attemptsOf = ({ attempts }: Row): number =>
  Object.values(attempts).reduce((sum, some) => sum + some, 0);
