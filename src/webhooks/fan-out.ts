// Queues the events of accounts with many endpoints piece by piece, the accounts beside one another (webhook-fan-out.ts of
// the store says why). A commit that brought pieces' deliveries has the dispatcher look, as any other.
import type { Clock, Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import type { FanOutPiece, Store } from "../store/store.ts";

export interface FanOut {
  /** Looks for accounts whose events wait. */
  kick(): void;
  /** Ends with the pieces that are under way; the rest is on disk. */
  stop(): Promise<void>;
}

const retryMs = 1000;
/**
 * Between two pieces of an account, so that its events take a tenth of the writer's time and not all that is left: fifteen
 * to 25,000 deliveries a second, more than are ever made.
 */
const restMs = 20;

export function createFanOut(deps: {
  store: Pick<Store, "accountsToFanOut" | "fanOut">;
  clock: Clock;
  log: Log;
}): FanOut {
  const { store, clock, log } = deps;
  /** By account: the work on it. */
  const working = new Map<number, Promise<void>>();
  /** What came while it was worked on: an answer of "nothing waits" may be older. */
  const again = new Set<number>();
  /** Ends the rests of accounts. */
  const resting = new Set<() => void>();
  /** One for all accounts that the store refuses. */
  let retry: Timer | null = null;
  let stopped = false;

  const kick = (): void => {
    if (!stopped) look().catch(refused);
  };
  const refused = (error: unknown): void => {
    if (retry !== null || stopped) return;
    log.error({ error: String(error) }, "events were not queued for webhooks; they wait");
    retry = clock.after(retryMs, () => {
      retry = null;
      kick();
    });
  };
  const rest = (): Promise<void> =>
    new Promise((resolve) => {
      if (stopped) return resolve(); // during the piece: none ends this rest
      const timer = clock.after(restMs, () => awake());
      const awake = (): void => {
        timer.cancel();
        resting.delete(awake);
        resolve();
      };
      resting.add(awake);
    });
  const queueAll = async (accountKey: number): Promise<void> => {
    try {
      let before: FanOutPiece | null = null;
      while (!stopped) {
        before = await store.fanOut(accountKey, before);
        if (before === null && !again.delete(accountKey)) break;
        await rest();
      }
    } catch (error) {
      refused(error);
    } finally {
      working.delete(accountKey);
    }
  };
  const look = async (): Promise<void> => {
    for (const accountKey of await store.accountsToFanOut()) {
      if (working.has(accountKey)) again.add(accountKey);
      else working.set(accountKey, queueAll(accountKey));
    }
  };

  return {
    kick,
    async stop() {
      stopped = true;
      retry?.cancel();
      for (const awake of resting) awake();
      await Promise.all(working.values());
    },
  };
}
