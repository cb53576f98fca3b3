// The check of the whole store that the operator asks for (`svc db check`): of a copy, which is made in the data directory and
// removed again, so that it needs as much free space as the database has, and no write waits for it.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import { isSound, type StoreCheck } from "../model/store-check.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { stampOf } from "./directory.ts";

export interface RunningCheck {
  startedAt: number;
  /** 0 to 1. */
  progress: number;
}

export interface EndedCheck {
  startedAt: number;
  endedAt: number;
  /** null: it was not completed. */
  check: StoreCheck | null;
  /** Why it was not. */
  error: string | null;
}

export interface StoreChecks extends Service {
  /** Begins one. Throws Refusal where one is running, or a backup. */
  begin(): void;
  running(): RunningCheck | null;
  /** The last one of this run of the program. */
  last(): EndedCheck | null;
}

const folderName = /^\.check-\d{8}T\d{6}Z$/;

/** Makes the copy in a folder of its own, and removes that. */
export async function checkStore(
  store: Pick<Store, "check">,
  dataDir: string,
  now: number,
  request: { onProgress(share: number): void; signal: AbortSignal },
): Promise<StoreCheck> {
  await removeAbandoned(dataDir);
  const directory = join(dataDir, `.check-${stampOf(now)}`);
  await mkdir(directory, { mode: 0o700 });
  try {
    return await store.check({ ...request, directory });
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** What a process that was killed left. */
async function removeAbandoned(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir))
    if (folderName.test(name)) await rm(join(dataDir, name), { recursive: true, force: true });
}

export function createStoreChecks(deps: {
  store: Pick<Store, "check">;
  dataDir: string;
  isBackingUp(): boolean;
  clock: Clock;
  log: Log;
}): StoreChecks {
  const { store, dataDir, clock, log } = deps;
  let running: RunningCheck | null = null;
  let last: EndedCheck | null = null;
  let over: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  const run = async (state: RunningCheck): Promise<void> => {
    const { startedAt } = state;
    const onProgress = (share: number): void => void (state.progress = share);
    try {
      const check = await checkStore(store, dataDir, startedAt, { onProgress, signal: stopping.signal });
      last = { startedAt, endedAt: clock.now(), check, error: null };
      if (!isSound(check)) log.error({ ...check, faults: check.faults.slice(0, 3) }, "the store is damaged");
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      last = { startedAt, endedAt: clock.now(), check: null, error };
      log.warn({ detail: error }, "the check of the store was not completed");
    }
    running = null;
  };

  return {
    name: "store checks",
    begin() {
      if (running) throw new Refusal("conflict", "A check is running. Try again when it has ended.");
      if (deps.isBackingUp())
        throw new Refusal("conflict", "A backup is running. Try again when it has ended.");
      running = { startedAt: clock.now(), progress: 0 };
      over = run(running);
    },
    running: () => running,
    last: () => last,
    start: () => removeAbandoned(dataDir),
    async stop() {
      stopping.abort();
      await over;
    },
  };
}
