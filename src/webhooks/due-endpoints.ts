// Which endpoints have deliveries that are due: the store is looked at after a commit, and when the earliest due time has
// come; less often where many endpoints have events.
import type { Store } from "../store/store.ts";
import type { DeliveryClaims } from "./claims.ts";
import type { EndpointQueues } from "./endpoint-queues.ts";
import type { Work } from "./work.ts";
import type { Writes } from "./writes.ts";

export interface DueEndpoints {
  /** Looks now, however short ago the last look was; again where one is under way. */
  look(): void;
  /** Something is perhaps due: looks now, or as soon as the last look is long enough ago. */
  kick(): void;
}

export interface DueEndpointsDeps {
  store: Pick<Store, "endpointsDue">;
  /** Milliseconds since the epoch, by a clock that never goes back. */
  time(): number;
  queues: Pick<EndpointQueues, "of" | "closeIdle" | "beginAt">;
  claims: Pick<DeliveryClaims, "fill">;
  writes: Pick<Writes, "holding" | "refused">;
  work: Work;
  /** `kick` is to be called then. */
  wakeAt(dueAt: number): void;
}

/** At least this often the store is looked at: others resume endpoints. */
export const longestSleepMs = 30_000;

/**
 * Where more endpoints than that have events, it looks less often: a look costs a seek for each of them, and there are a
 * hundred commits a second, and failing endpoints whose rests end one by one. So looks take a fiftieth of the loop.
 */
const fewEndpoints = 10;
const lookMsPerEndpoint = 0.5;

export function createDueEndpoints(deps: DueEndpointsDeps): DueEndpoints {
  const { store, time, queues, claims, writes, work, wakeAt } = deps;
  let looking = false;
  let lookAgain = false;
  /** What comes before that waits until then to be looked at. */
  let nextLookAt = -Infinity;

  const look = (): void => {
    if (!work.running() || writes.holding()) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    work.track(
      lookOnce()
        .catch((error: unknown) => writes.refused(error, "looking for due webhooks"))
        .finally(looked),
    );
  };

  const looked = (): void => {
    looking = false;
    if (!lookAgain) return;
    lookAgain = false;
    look();
  };

  const lookOnce = async (): Promise<void> => {
    const due = await store.endpointsDue();
    const now = time();
    nextLookAt = due.length > fewEndpoints ? now + Math.ceil(due.length * lookMsPerEndpoint) : now;
    for (const { endpointKey, accountKey, dueAt, retryAt, failures } of due) {
      if (dueAt > now) {
        wakeAt(dueAt);
        continue;
      }
      const queue = queues.of(endpointKey, accountKey, now, failures);
      // What was not tried yet may have to wait; what was is due at its own time.
      const times = [queues.beginAt(queue), dueAt > 0 ? dueAt : (retryAt ?? Infinity)];
      for (const at of times) if (at > now) wakeAt(at);
      if (Math.min(...times) <= now) claims.fill(queue, true);
    }
    queues.closeIdle(now);
    wakeAt(now + longestSleepMs);
  };

  return {
    look,
    kick() {
      if (time() >= nextLookAt) look();
      else wakeAt(nextLookAt);
    },
  };
}
