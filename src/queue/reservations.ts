// Slots that are promised to recipients whose acceptance is on its way to the disk: accepted, they start at once, with no
// claim and no read back. A recipient gets one only where its queue has room and nothing waits before it.
import type { Job } from "../model/queued-recipient.ts";
import type { Attempts } from "./attempts.ts";
import type { Claims } from "./claims.ts";
import type { ReadyQueues, Slot } from "./ready-queues.ts";
import type { Destination, Routing } from "./routing.ts";

/** What a recipient is inserted with, and starts with. */
export interface Reservation {
  leaseOwner: string;
  to: Destination;
  slot: Slot;
}

export interface Reservations {
  /** A slot for a recipient that is about to be accepted, where its queue has one and nothing waits before it; else null. */
  reserve(queueName: string): Reservation | null;
  /** The acceptance failed: the slot is free again. */
  cancelReservation(reservation: Reservation): void;
  /** The job was inserted under its reservation's lease: it starts now. */
  run(reservation: Reservation, job: Job): void;
}

export interface ReservationsDeps {
  routing: Pick<Routing, "known">;
  ready: Pick<ReadyQueues, "of" | "room" | "isAtCap" | "take" | "leave">;
  attempts: Pick<Attempts, "start">;
  claims: Pick<Claims, "requeue">;
  isQueuePaused(queueName: string, provider: string | null): boolean;
  /** Slots are promised now. */
  open(): boolean;
  stopping(): boolean;
  owner: string;
  now(): number;
}

export function createReservations(deps: ReservationsDeps): Reservations {
  const { routing, ready, attempts, claims, owner, now } = deps;
  return {
    reserve(queueName) {
      const to = deps.open() ? routing.known(queueName) : null;
      if (!to || deps.isQueuePaused(queueName, to.group)) return null;
      const queue = ready.of(to);
      if (queue.ready.length > 0 || queue.due.length > 0 || ready.room(queue) === 0) return null;
      if (ready.isAtCap(queue)) return null;
      const slot = ready.take(queue);
      return slot && { leaseOwner: owner, to, slot };
    },
    cancelReservation: ({ to, slot }) => ready.leave(ready.of(to), slot, false),
    run({ to, slot }, job) {
      const queue = ready.of(to);
      if (!deps.stopping()) return attempts.start({ queue, slot, job, to, fresh: true });
      ready.leave(queue, slot, false);
      return void claims.requeue([job], now());
    },
  };
}
