// The end of the attempts at a stop: one that has not sent its final dot after 5 seconds is cut and deferred. After the
// final dot the receiver may accept the message, so the reply is awaited.
import type { Clock } from "../clock.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { Runner } from "../queue/runner.ts";

const cutShortMs = 5_000;

/** `runner`, whose stop cuts the attempts that take too long. */
export function endAttemptsAtStop(
  runner: Runner,
  delivery: Pick<Delivery, "cutShort">,
  clock: Clock,
): Runner {
  return {
    ...runner,
    async stop() {
      const late = clock.after(cutShortMs, () => delivery.cutShort());
      await runner.stop();
      late.cancel();
    },
  };
}
