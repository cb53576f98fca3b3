// Ends all sessions at shutdown: idle ones get a 421 at once, busy ones in place of their next reply (RFC 5321 §3.8
// allows 421 at any time). The peer then has a moment to disconnect, an upload has ten seconds; a mail that is being
// stored gets its 250, however long the store takes.
import type { Clock, Timer } from "../clock.ts";
import type { RelayConnection } from "./smtp-connection.ts";

const hangUpMs = 1_000;
const uploadMs = 10_000;

/** Resolves when no session is left. `whenEmpty` is called back at the end of the last one. */
export async function dismissAll(
  clock: Clock,
  sessions: () => RelayConnection[],
  whenEmpty: (run: () => void) => void,
): Promise<void> {
  const deadline = clock.monotonic() + uploadMs;
  for (const session of sessions()) session.dismiss();
  if (sessions().length === 0) return;
  let timer: Timer;
  const press = (): void => {
    const late = clock.monotonic() >= deadline;
    for (const session of sessions()) if (late || session.closing) session.cut();
    timer = clock.after(hangUpMs, press);
  };
  timer = clock.after(hangUpMs, press);
  await new Promise<void>(whenEmpty);
  timer.cancel();
}
