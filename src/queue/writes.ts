// What the runner has to write: outcomes, and jobs that go back untried. A write that the store refuses is kept and
// tried each second, and nothing new is claimed until it is through; one that fails by a fault of this program is kept
// aside and tried each minute. The boot holds their leases meanwhile, so nobody else sends them, and no start but the next
// would take them back: what is dropped here would never move again.
import type { Clock, Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import { StoreUnavailable } from "../store/store.ts";

export interface Write {
  /** The store's call, for the log. */
  call: string;
  run(): Promise<unknown>;
  /** Called after each try, failed ones too: what waits in the store now is to be looked for. */
  tried(): void;
}

export interface Writes {
  /** Never rejects: what fails is kept. */
  add(write: Write): Promise<void>;
  /** The store refuses: what was refused goes before anything new. */
  holding(): boolean;
  /** How many are kept. */
  kept(): number;
  /** No more tries by the clock. */
  halt(): void;
  /** One last try of what is kept. What fails again is left to the next start, which takes the leases back. */
  finish(): Promise<void>;
}

const refusedRetryMs = 1_000;
const faultyRetryMs = 60_000;

/** `onResume`: the store takes writes again. */
export function createWrites(deps: { clock: Clock; log: Log; onResume(): void }): Writes {
  const { clock, log } = deps;
  let refused: Write[] = [];
  let faulty: Write[] = [];
  /** Refused ones that are being tried again. */
  let trying = 0;
  let halted = false;
  let refusedRetry: Timer | null = null;
  let faultyRetry: Timer | null = null;

  const holding = (): boolean => trying > 0 || refused.length > 0;

  const attempt = async (write: Write): Promise<void> => {
    try {
      await write.run();
    } catch (error) {
      logStoreFault(log, write.call, error);
      (error instanceof StoreUnavailable ? refused : faulty).push(write);
      arm();
    }
    write.tried();
  };

  const arm = (): void => {
    if (halted) return;
    if (refused.length > 0)
      refusedRetry ??= clock.after(refusedRetryMs, () => ((refusedRetry = null), void tryRefused()));
    if (faulty.length > 0)
      faultyRetry ??= clock.after(faultyRetryMs, () => ((faultyRetry = null), void tryFaulty()));
  };

  const tryRefused = async (): Promise<void> => {
    const again = refused;
    refused = [];
    trying += again.length;
    await Promise.all(again.map(attempt));
    trying -= again.length;
    if (!holding()) deps.onResume();
  };

  const tryFaulty = async (): Promise<void> => {
    const again = faulty;
    faulty = [];
    await Promise.all(again.map(attempt));
  };

  return {
    add: attempt,
    holding,
    kept: () => refused.length + trying + faulty.length,
    halt() {
      halted = true;
      refusedRetry?.cancel();
      faultyRetry?.cancel();
    },
    async finish() {
      await Promise.all([...refused.splice(0), ...faulty.splice(0)].map(attempt));
    },
  };
}

/** Of a call to the store that failed: a refusal is the disk's, anything else is a bug. */
export function logStoreFault(log: Log, call: string, error: unknown): void {
  if (error instanceof StoreUnavailable)
    log.warn({ call, why: error.why, detail: error.message }, "the store accepts no writes; delivery waits");
  else log.error({ call, err: error }, "a call to the store failed by a fault of this program");
}
