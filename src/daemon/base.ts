// What the parts of the daemon are given before any module exists.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { IdMint } from "../ids.ts";
import type { Log, LogLines } from "../log.ts";
import type { Store } from "../store/store.ts";

/** Options that have another value now than `config` has; or the faults of the configuration as it is now. */
export type Changes = () => { changed: string[] } | { faults: string[] };

export interface Base {
  config: Config;
  log: Log;
  clock: Clock;
  mint: IdMint;
  store: Store;
  /** Milliseconds since 1970. */
  startedAt: number;
  changes: Changes;
  logLines: LogLines;
}

export interface Listening {
  addresses(): { name: string; address: string }[];
}
