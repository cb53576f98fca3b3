// Pauses of parts of the queue, kept in memory so that an attempt needs no look-up. Mail of a paused domain, provider or pool
// is not routed or claimed, and none leaves from a paused address; the runner looks again when a pause begins or ends
// (onChange). A pause that ends by its time is dropped here, and from the store with the next write.
import type { Clock, Timer } from "../clock.ts";
import type { PauseOf, PauseScope, QueuePause } from "../model/queue-pause.ts";
import type { Source } from "../pools/sources.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { readQueueName } from "./queue-name.ts";
import { providerOf } from "./shaping.ts";

export interface QueuePauses extends Service {
  /** Mail of the scheduled queue gets no attempt. `provider`: or group of its destination; null: not known yet. */
  isPaused(queueName: string, provider: string | null): boolean;
  /** The pause that stops such mail; null: none does. */
  of(accountKey: number, ipPool: string, domain: string, provider: string | null): QueuePause | null;
  /** Those that mail may leave from; the same list until a pause begins or ends, or it is given another. */
  usable(sources: readonly Source[]): readonly Source[];
  /** The pauses now, the oldest first. */
  list(): QueuePause[];
  /** Reads the pauses from the store: at the start, and after each change. */
  reload(): Promise<void>;
  /** Called when a pause has begun or ended. */
  onChange(listener: () => void): void;
}

/** A timer fires at least this often, since the wall clock may jump. */
const longestWaitMs = 60_000;

export function createQueuePauses(deps: { store: Pick<Store, "queuePauses">; clock: Clock }): QueuePauses {
  const { store, clock } = deps;
  let pauses = new Map<string, QueuePause>();
  let filtered = new WeakMap<readonly Source[], readonly Source[]>();
  let addresses = new Set<string>();
  let timer: Timer | null = null;
  let stopped = false;
  const listeners: (() => void)[] = [];

  const set = (all: readonly QueuePause[]): void => {
    pauses = new Map(all.map((pause) => [keyOf(pause), pause]));
    addresses = new Set(all.flatMap(({ scope, name }) => (scope === "ip" ? [name] : [])));
    filtered = new WeakMap();
    arm();
  };
  const arm = (): void => {
    timer?.cancel();
    timer = null;
    const ends = [...pauses.values()].flatMap(({ until }) => until ?? []);
    if (ends.length === 0 || stopped) return;
    const waitMs = Math.min(...ends) - clock.now();
    timer = clock.after(Math.min(Math.max(0, waitMs), longestWaitMs), endPast);
  };
  const endPast = (): void => {
    const left = [...pauses.values()].filter(({ until }) => until === null || until > clock.now());
    if (left.length === pauses.size) return arm();
    set(left);
    for (const listener of listeners) listener();
  };
  const get = (scope: PauseScope, accountKey: number | null, name: string): QueuePause | undefined =>
    pauses.get(keyOf({ scope, accountKey, name }));
  const of: QueuePauses["of"] = (accountKey, ipPool, domain, provider) =>
    get("domain", null, domain) ??
    get("pool", accountKey, ipPool) ??
    (provider === null ? null : (get("provider", null, providerOf(provider)) ?? null));

  return {
    name: "queue-pauses",
    async start() {
      set(await store.queuePauses());
      endPast();
    },
    async stop() {
      stopped = true;
      timer?.cancel();
    },
    isPaused(queueName, provider) {
      if (pauses.size === 0) return false;
      const named = readQueueName(queueName);
      return named !== null && of(named.accountKey, named.ipPool, named.domain, provider) !== null;
    },
    of,
    usable(sources) {
      if (addresses.size === 0) return sources;
      let left = filtered.get(sources);
      if (!left) {
        left = sources.filter(({ address }) => address === null || !addresses.has(address));
        filtered.set(sources, left);
      }
      return left;
    },
    list: () => [...pauses.values()].toSorted((a, b) => a.since - b.since),
    async reload() {
      set(await store.queuePauses());
      endPast();
      for (const listener of listeners) listener();
    },
    onChange: (listener) => void listeners.push(listener),
  };
}

function keyOf({ scope, accountKey, name }: PauseOf): string {
  return `${scope} ${accountKey ?? ""} ${name}`;
}
