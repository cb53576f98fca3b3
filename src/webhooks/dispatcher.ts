// Sends what is due: the store says which endpoints have deliveries (due-endpoints.ts), they are claimed as far as there are
// slots (claims.ts), attempted (attempts.ts) and settled (writes.ts, results.ts). Each endpoint has a queue of its own with up to 32
// attempts in flight (endpoint-queues.ts), so that one that hangs delays no other. Within a queue first attempts start in
// event order, before retries. The attempt number and its lease are on disk before the attempt, so a crash loses none: the
// next start takes them back. While results cannot be written nothing is claimed. Of a failing endpoint events wait untried
// and unclaimed. One timer wakes for the earliest due time of all (wake-timer.ts).
import { forwardTime, type Clock } from "../clock.ts";
import { createTurns } from "../fairness/turns.ts";
import type { Log } from "../log.ts";
import type { DeliveryResult } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import type { Store } from "../store/store.ts";
import { createDeliveryAttempts } from "./attempts.ts";
import { createDeliveryClaims } from "./claims.ts";
import { createDueEndpoints, longestSleepMs } from "./due-endpoints.ts";
import { createEndpointQueues, isFailing } from "./endpoint-queues.ts";
import type { Post } from "./post.ts";
import type { DeadLetter } from "./results.ts";
import { createWakeTimer } from "./wake-timer.ts";
import { createWork } from "./work.ts";
import { createWrites } from "./writes.ts";

export type DispatchStore = Pick<
  Store,
  "endpointsDue" | "endpointByKey" | "claimDeliveries" | "settleDeliveries" | "requeueDeliveries"
>;

export interface DispatcherDeps {
  store: DispatchStore;
  post: Post;
  scheduleMs: readonly number[];
  /** This boot. */
  owner: string;
  clock: Clock;
  log: Log;
  /** Called after the dead letter is on disk. */
  onDeadLetter(letter: DeadLetter): void;
  /** An attempt ended, and came to this. */
  onAttempt?(endpoint: Endpoint, result: DeliveryResult["result"]["kind"]): void;
}

export interface Dispatcher {
  start(): void;
  kick(): void;
  /** The endpoint may have been repaired, resumed or moved: its events are tried now. */
  retryNow(endpointKey: number): void;
  stop(): Promise<void>;
}

const stopGraceMs = 3000;
/** Attempts that begin in a turn of the loop, of all accounts: hundreds at once would hold up all else that waits for it. */
const attemptsPerTurn = 16;

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { clock } = deps;
  const time = forwardTime(clock);
  const queues = createEndpointQueues(deps.post);
  const work = createWork();
  const wake = createWakeTimer({ clock, time, longestSleepMs, onWake: () => due.kick() });
  const wakeAt = (dueAt: number): void => {
    if (work.running()) wake.at(dueAt);
  };
  const parts = { ...deps, queues, time, work, wakeAt };
  const writes = createWrites({ ...parts, onResume: () => due.look() });
  const attempts = createDeliveryAttempts({
    ...parts,
    turns: createTurns({ clock, pieces: attemptsPerTurn, everyMs: 0 }),
    onSlotFree(queue) {
      if (isFailing(queue)) wakeAt(queues.beginAt(queue));
      claims.fill(queue, false);
    },
    onFault(queue, delivery, error) {
      claims.pause(queue, error);
      writes.requeueAfterFault([delivery]);
    },
    onFinished: writes.add,
  });
  const claims = createDeliveryClaims({ ...parts, attempts, writes });
  const due = createDueEndpoints({ ...parts, claims, writes });

  return {
    start() {
      work.start();
      due.look();
    },
    kick: due.kick,
    retryNow(endpointKey) {
      queues.probeNow(endpointKey);
      due.kick();
    },
    async stop() {
      work.stop();
      wake.cancel();
      writes.halt();
      const grace = clock.after(stopGraceMs, () => {
        attempts.cutShort();
        queues.closeAll();
      });
      await work.finish();
      grace.cancel();
      queues.closeAll();
    },
  };
}
