// What the appliance does now, for `svc top`: the counts of the last minute by second, by provider, by sending address and
// by webhook endpoint, the queue, and which limits a receiver has lowered. All accounts together; mail of test keys is left
// out. Counting costs a few additions a commit and an attempt; a snapshot is made at most twice a second, however many
// ask, and the queue is counted for a tenth of the time at most.
import type { Clock } from "../clock.ts";
import { counterNames, type CounterName } from "../model/counters.ts";
import type { QueueCounts } from "../model/queue.ts";
import type { Settlement } from "../model/settlement.ts";
import type { EgressNow, LimiterState } from "../queue/egress.ts";
import { providerOf } from "../queue/shaping.ts";
import type { Store } from "../store/store.ts";
import { createMinutes, Window, type MinuteOf } from "./windows.ts";

export const mailCounts = ["delivered", "deferred", "bounced"] as const;
export type MailCount = (typeof mailCounts)[number];
export const webhookCounts = ["delivered", "failed", "dead_lettered"] as const;
export type WebhookCount = (typeof webhookCounts)[number];
export const rateNames = ["accepted", "delivered", "deferred", "bounced"] as const satisfies CounterName[];
export type RateName = (typeof rateNames)[number];

export interface AttemptsNow extends MinuteOf<MailCount> {
  /** Attempts that run now. */
  attempts: number;
}

export interface ActivityNow {
  at: number;
  startedAt: number;
  /** Of the last sixty whole seconds, oldest first. */
  seconds: Record<RateName, number[]>;
  queue: QueueCounts;
  connections: number;
  attempts: number;
  /** Outcomes that wait to be written. */
  unwritten: number;
  providers: AttemptsNow[];
  ips: AttemptsNow[];
  webhooks: (MinuteOf<WebhookCount> & { url: string })[];
  /** Those that were slowed down last come first. */
  slowed: LimiterState[];
}

export interface Activity {
  /** An outcome is about to be written. */
  settled(isTest: boolean, settlement: Pick<Settlement, "provider" | "outcome" | "record">): void;
  /** An attempt at a webhook endpoint came to this. */
  posted(endpoint: { id: string; url: string }, count: WebhookCount): void;
  now(): Promise<ActivityNow>;
  stop(): void;
}

export interface ActivityDeps {
  store: Pick<Store, "onCommit" | "queueCounts">;
  clock: Clock;
  startedAt: number;
  egress(mostSlowed: number): EgressNow;
  queue(): { active: number; unwritten: number };
  /** Connections to receivers that are open, idle ones included. */
  connections(): number;
}

const rowsMost = 100;
const sharedMs = 500;
const queueEachMs = 1000;
/** The pause after a count of the queue, as a multiple of what it took. */
const queuePause = 9;
const shownSeconds = 60;

export function createActivity(deps: ActivityDeps): Activity {
  const { store, clock } = deps;
  const seconds = new Window(rateNames.length, shownSeconds + 1, 1000, clock.monotonic());
  const places = rateNames.map((name) => counterNames.indexOf(name));
  const stop = store.onCommit(({ counted }) => {
    if (!counted) return;
    const now = clock.monotonic();
    places.forEach((place, rate) => {
      const by = counted[place] ?? 0;
      if (by > 0) seconds.add(rate, by, now);
    });
  });
  const providers = createMinutes(mailCounts, clock);
  const ips = createMinutes(mailCounts, clock);
  const webhooks = createMinutes(webhookCounts, clock);
  const queueCounts = createQueueCounts(store, clock);

  const snapshot = async (): Promise<ActivityNow> => {
    const queue = await queueCounts();
    const now = clock.monotonic();
    const { running, slowed } = deps.egress(rowsMost);
    const { active, unwritten } = deps.queue();
    return {
      at: clock.now(),
      startedAt: deps.startedAt,
      seconds: Object.fromEntries(
        rateNames.map((name, place) => [name, seconds.series(place, now).slice(0, -1)]),
      ) as Record<RateName, number[]>,
      queue,
      connections: deps.connections(),
      attempts: active,
      unwritten,
      providers: withAttempts(providers.top(rowsMost), running, ({ group }) => providerOf(group)),
      ips: withAttempts(ips.top(rowsMost), running, ({ address }) => address ?? ""),
      webhooks: webhooks.top(rowsMost).map(({ key, counts }) => {
        const id = key.slice(0, key.indexOf(" "));
        return { key: id, url: key.slice(id.length + 1), counts };
      }),
      slowed,
    };
  };
  let shared: { madeAt: number; made: Promise<ActivityNow> } | null = null;

  return {
    settled(isTest, { provider, outcome, record }) {
      if (isTest || provider === null) return;
      providers.add(provider, outcome);
      if (record?.sendingIp != null) ips.add(record.sendingIp, outcome);
    },
    posted: ({ id, url }, count) => webhooks.add(`${id} ${url}`, count),
    now() {
      const now = clock.monotonic();
      if (!shared || now - shared.madeAt >= sharedMs) {
        const made = snapshot();
        shared = { madeAt: now, made };
        made.catch(() => (shared = null));
      }
      return shared.made;
    },
    stop,
  };
}

/** The counts of a long queue take the store's reader a while: who asks meanwhile gets the last ones. */
function createQueueCounts(
  store: Pick<Store, "queueCounts">,
  clock: Clock,
): () => QueueCounts | Promise<QueueCounts> {
  let last: QueueCounts | null = null;
  let dueAt = Number.NEGATIVE_INFINITY;
  let running: Promise<QueueCounts> | null = null;
  const count = async (): Promise<QueueCounts> => {
    const began = clock.monotonic();
    try {
      return (last = await store.queueCounts());
    } finally {
      const ended = clock.monotonic();
      dueAt = Math.max(began + queueEachMs, ended + queuePause * (ended - began));
      running = null;
    }
  };
  return () => {
    if (running === null && clock.monotonic() >= dueAt) {
      running = count();
      running.catch(() => undefined); // who waits for it hears of it
    }
    return last ?? running ?? count();
  };
}

/** Each with the attempts that run there; a key with attempts alone comes behind. */
function withAttempts(
  rows: MinuteOf<MailCount>[],
  running: EgressNow["running"],
  keyOf: (limiter: EgressNow["running"][number]) => string,
): AttemptsNow[] {
  const attempts = new Map<string, number>();
  for (const limiter of running) {
    const key = keyOf(limiter);
    attempts.set(key, (attempts.get(key) ?? 0) + limiter.taken);
  }
  const none = { delivered: 0, deferred: 0, bounced: 0 };
  const known = new Set(rows.map(({ key }) => key));
  const waiting = [...attempts.keys()].filter((key) => key !== "" && !known.has(key));
  return [...rows, ...waiting.map((key) => ({ key, counts: none }))]
    .slice(0, rowsMost)
    .map((row) => ({ ...row, attempts: attempts.get(row.key) ?? 0 }));
}
