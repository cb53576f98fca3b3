// How long the mail of a lane waits because its pool can use no address. The wait begins when the queue looks at the
// lane and finds no address, and ends when the change that brings one is reported, so that the time behind a slow
// receiver is not part of it. The store adds it to what a claim leases: it does not count towards the age at which mail
// is given up. It is kept in memory; after a restart, mail that was due before the start counts from its due time.
import type { Wait } from "../model/queue.ts";

export interface AddressWaits {
  /** At the start: mail of the lane is due already, and how long it waits for an address is not known. */
  overdue(lane: string): void;
  /** No address can be used for the lane. */
  begin(lane: string, now: number): void;
  /** It has changed which addresses can be used; answers the lanes that are to be looked at again. */
  changed(now: number): Iterable<string>;
  /** An address can be used for the lane. */
  end(lane: string, now: number): void;
  /** Past waits that mail of the lane may still have to be credited for. */
  of(lane: string): readonly Wait[];
  /** The lane's earliest that still waits is due at `nextDueAt`. */
  claimed(lane: string, nextDueAt: number | null): void;
}

/** Of one lane; where an address comes and goes more often, the oldest wait is forgotten. */
const waitsMost = 20;
const none: readonly Wait[] = [];

export function createAddressWaits(): AddressWaits {
  /** `changedAt`: the last change since then, of which it is not known yet whether it brought an address. */
  const open = new Map<string, { from: number; changedAt: number | null }>();
  const past = new Map<string, Wait[]>();
  const unknown = new Set<string>();

  return {
    overdue: (lane) => void unknown.add(lane),
    begin(lane, now) {
      const from = open.get(lane)?.from ?? (unknown.delete(lane) ? 0 : now);
      open.set(lane, { from, changedAt: null });
    },
    changed(now) {
      for (const wait of open.values()) wait.changedAt = now;
      return open.keys();
    },
    end(lane, now) {
      unknown.delete(lane);
      const wait = open.get(lane);
      if (!wait) return;
      open.delete(lane);
      const waits = past.get(lane) ?? [];
      waits.push({ from: wait.from, until: wait.changedAt ?? now });
      if (waits.length > waitsMost) waits.shift();
      past.set(lane, waits);
    },
    of: (lane) => past.get(lane) ?? none,
    claimed(lane, nextDueAt) {
      const last = past.get(lane)?.at(-1);
      if (last && (nextDueAt === null || nextDueAt >= last.until)) past.delete(lane);
    },
  };
}
