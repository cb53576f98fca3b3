// Scheduled queues that are due and from which nothing may be sent: paused ones, and those whose pool can use no address.
// They are routed again when it changes what may be sent, and in any case after ten minutes.
import type { AddressWaits } from "./address-waits.ts";
import type { ScheduledQueues } from "./scheduled-queues.ts";

export interface ParkedQueues {
  /** Until it changes what may be sent. */
  park(queueName: string): void;
  /** It has changed. */
  changed(): void;
}

const longestMs = 600_000;

export function createParkedQueues(deps: {
  waits: Pick<AddressWaits, "begin" | "changed">;
  scheduled: Pick<ScheduledQueues, "add" | "comesBack">;
  now(): number;
}): ParkedQueues {
  const { waits, scheduled, now } = deps;
  return {
    park(queueName) {
      waits.begin(queueName, now());
      scheduled.comesBack(queueName, now() + longestMs);
    },
    changed() {
      for (const queueName of waits.changed(now())) scheduled.add(queueName, now());
    },
  };
}
