// What the parts of the daemon are given before any module exists.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";

export interface Base {
  config: Config;
  log: Log;
  clock: Clock;
  mint: IdMint;
  store: Store;
  /** Milliseconds since 1970. */
  startedAt: number;
}

export interface Listening {
  addresses(): { name: string; address: string }[];
}
