// Slots that owners share, so that one owner whose work hangs holds up nobody else's: an owner holds at most three times
// as many as are free, so that there is always one for an owner that has none; those that wait are served by turns, an
// owner's own in their order. Work that lasts longer than `patienceMs` gives its slot to the next and lingers outside of
// the slots, in places that are shared by the same rule.
import type { Clock, Timer } from "./clock.ts";
import { Fifo } from "./fairness/fifo.ts";

/** An account's key, or the name of a part of this program. */
export type Owner = string | number;

export interface FairSlots {
  /**
   * Calls `begin` once `owner` has a slot: at once, or when it is its turn. The work ends by calling `leave`, more often
   * does no harm. Where the lingering places of its owner are full, its oldest work is ended by `giveUp`; work without
   * that keeps its slot.
   */
  enter(owner: Owner, begin: (leave: () => void) => void, giveUp?: () => void): void;
}

export interface FairSlotsOptions {
  slots: number;
  patienceMs: number;
  lingering: number;
  clock: Clock;
}

const timesTheFree = 3;
/** Where the work of an owner comes to nothing: so many times the patience at least, more by this many steps of a quarter. */
const crowdedPatience = 2;
const crowdedSteps = 16;

/** Whether an owner that holds `own` of `total` may hold one more while `taken` are taken by all. */
export function hasShare(own: number, taken: number, total: number): boolean {
  return own < timesTheFree * (total - taken);
}

interface Share {
  owner: Owner;
  held: number;
  /** Oldest first. */
  lingering: Set<Work>;
  waiting: Fifo<Entry>;
}

interface Entry {
  begin: (leave: () => void) => void;
  giveUp: (() => void) | undefined;
}

interface Work {
  share: Share;
  giveUp: (() => void) | undefined;
  timer: Timer | null;
  place: "slot" | "lingering" | "left";
}

export function createFairSlots({ slots, patienceMs, lingering, clock }: FairSlotsOptions): FairSlots {
  const shares = new Map<Owner, Share>();
  /** Those that wait, the next one first. */
  const turns = new Set<Share>();
  let taken = 0;
  let lingers = 0;
  let step = 0;

  const shareOf = (owner: Owner): Share => {
    let share = shares.get(owner);
    if (!share) {
      share = { owner, held: 0, lingering: new Set(), waiting: new Fifo() };
      shares.set(owner, share);
    }
    return share;
  };

  /** Spread, so that those which were begun together do not pass on their slots together. */
  const patienceOf = ({ lingering: { size } }: Share): number => {
    if (size <= lingering / 4) return patienceMs;
    step = (step + 1) % crowdedSteps;
    return patienceMs * (crowdedPatience + step / 4);
  };

  const start = (share: Share, { begin, giveUp }: Entry): void => {
    taken += 1;
    share.held += 1;
    const work: Work = { share, giveUp, timer: null, place: "slot" };
    const halfMs = patienceOf(share) / 2;
    // In two halves: a loop that was held up reads what has arrived before the second.
    work.timer = clock.after(halfMs, () => {
      work.timer = clock.after(halfMs, () => linger(work));
    });
    begin(() => leave(work));
  };

  /** A share that is passed over stays where it is in the order; what is served goes to the end. */
  const admit = (): void => {
    for (const share of turns) {
      if (taken >= slots) return;
      if (!hasShare(share.held, taken, slots)) continue;
      turns.delete(share);
      const next = share.waiting.shift();
      if (share.waiting.size > 0) turns.add(share);
      if (next) start(share, next);
    }
  };

  const linger = (work: Work): void => {
    const { share } = work;
    if (!hasShare(share.lingering.size, lingers, lingering)) {
      if (!work.giveUp) return;
      const [oldest = work] = share.lingering;
      leave(oldest);
      oldest.giveUp?.();
    }
    if (work.place !== "slot") return;
    work.place = "lingering";
    share.lingering.add(work);
    lingers += 1;
    freeSlot(share);
    admit();
  };

  const freeSlot = (share: Share): void => {
    taken -= 1;
    share.held -= 1;
  };

  const leave = (work: Work): void => {
    const { share, place } = work;
    if (place === "left") return;
    work.place = "left";
    work.timer?.cancel();
    if (place === "slot") freeSlot(share);
    else if (share.lingering.delete(work)) lingers -= 1;
    if (share.held === 0 && share.lingering.size === 0 && share.waiting.size === 0)
      shares.delete(share.owner);
    admit();
  };

  return {
    enter(owner, begin, giveUp) {
      const share = shareOf(owner);
      share.waiting.push({ begin, giveUp });
      turns.add(share);
      admit();
    },
  };
}
