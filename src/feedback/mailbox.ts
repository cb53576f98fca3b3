// The addresses of ours to which mail may come back, and what this room needs of the others.
import type { Notices } from "../care/notices.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";

/** Where feedback loops send complaints; `fbl+yahoo@…` names the loop. */
export function complaintsAddress(hostname: string): string {
  return `fbl@${hostname.toLowerCase()}`;
}

export type Mailbox =
  | { kind: "return_path"; messageKey: number; recipientKey: number }
  | { kind: "complaints"; source: string | null }
  | { kind: "operator"; name: string };

export interface FeedbackDeps {
  store: Pick<Store, "sentMessage" | "settleReports">;
  recorder: Pick<Recorder, "reported" | "complained">;
  /** Signs return paths, 32 bytes. */
  verpSecret: Uint8Array;
  config: Pick<Config, "hostname" | "operations">;
  notices: Pick<Notices, "notify">;
  clock: Clock;
  log: Log;
}
