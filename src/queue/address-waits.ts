// How long the mail of a scheduled queue waits because its pool can use no address. The wait begins when the queue looks at the
// scheduled queue and finds no address, and ends when the change that brings one is reported, so that the time behind a slow
// receiver is not part of it. The store adds it to what a claim leases: it does not count towards the age at which mail
// is given up. It is kept in memory; after a restart, mail that was due before the start counts from its due time.
import type { Wait } from "../model/queue.ts";

export interface AddressWaits {
  /** At the start: mail of the scheduled queue is due already, and how long it waits for an address is not known. */
  overdue(queueName: string): void;
  /** No address can be used for the scheduled queue. */
  begin(queueName: string, now: number): void;
  /** It has changed which addresses can be used; answers the scheduled queues that are to be looked at again. */
  changed(now: number): Iterable<string>;
  /** An address can be used for the scheduled queue. */
  end(queueName: string, now: number): void;
  /** Past waits that mail of the scheduled queue may still have to be credited for. */
  of(queueName: string): readonly Wait[];
  /** The scheduled queue's earliest that still waits is due at `nextDueAt`. */
  claimed(queueName: string, nextDueAt: number | null): void;
}

/** Of one scheduled queue; where an address comes and goes more often, the oldest wait is forgotten. */
const waitsMost = 20;
const none: readonly Wait[] = [];

export function createAddressWaits(): AddressWaits {
  /** `changedAt`: the last change since then, of which it is not known yet whether it brought an address. */
  const open = new Map<string, { from: number; changedAt: number | null }>();
  const past = new Map<string, Wait[]>();
  const unknown = new Set<string>();

  return {
    overdue: (queueName) => void unknown.add(queueName),
    begin(queueName, now) {
      const from = open.get(queueName)?.from ?? (unknown.delete(queueName) ? 0 : now);
      open.set(queueName, { from, changedAt: null });
    },
    changed(now) {
      for (const wait of open.values()) wait.changedAt = now;
      return open.keys();
    },
    end(queueName, now) {
      unknown.delete(queueName);
      const wait = open.get(queueName);
      if (!wait) return;
      open.delete(queueName);
      const waits = past.get(queueName) ?? [];
      waits.push({ from: wait.from, until: wait.changedAt ?? now });
      if (waits.length > waitsMost) waits.shift();
      past.set(queueName, waits);
    },
    of: (queueName) => past.get(queueName) ?? none,
    claimed(queueName, nextDueAt) {
      const last = past.get(queueName)?.at(-1);
      if (last && (nextDueAt === null || nextDueAt >= last.until)) past.delete(queueName);
    },
  };
}
