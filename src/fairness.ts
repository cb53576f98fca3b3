// Slots that owners share, so that one owner's hanging work does not delay another's: an owner holds at most three times
// as many slots as are free, so that one is left for an owner without any; waiting owners take turns. Of an owner's
// waiting work the newest is served every other time, or seven times of eight where much of it hangs, so that it does not
// wait behind thousands that hang; in between come the oldest and the retries. Work that lasts longer than `patienceMs`
// gives its slot to the next and lingers outside of the slots, in places that are shared by the same rule.
import type { Clock, Timer } from "./clock.ts";
import { Fifo } from "./fairness/fifo.ts";

/** An account's key, or the name of a part of this program. */
export type Owner = string | number;

export interface FairSlots {
  /**
   * Calls `begin` once `owner` has a slot: at once, or when it is its turn. The work ends by calling `leave`, more often
   * does no harm.
   */
  enter(owner: Owner, begin: (leave: () => void) => void, how?: EnterOptions): void;
}

export interface EnterOptions {
  /** Ends the work, its owner's oldest, where the lingering places of its owner are full. Work without it keeps its slot. */
  giveUp?: () => void;
  /** It failed when it was last tried: it waits apart from new work. */
  again?: boolean;
}

export interface FairSlotsOptions {
  slots: number;
  patienceMs: number;
  lingering: number;
  clock: Clock;
}

const timesTheFree = 3;
/** The patience is up to twice as long, in so many steps. */
const steps = 16;
/** Where much of an owner's work lingers, what is tried again has so many times the patience at least, more by quarters. */
const crowdedPatience = 2;

/** Where more of an owner's work lingers than there are slots, what waits longest hangs as well: the newest goes first so many times. */
const newestOfHanging = 7;

/** Whether an owner that holds `own` of `total` may hold one more while `taken` are taken by all. */
export function hasShare(own: number, taken: number, total: number): boolean {
  return own < timesTheFree * (total - taken);
}

interface Share {
  owner: Owner;
  held: number;
  /** Oldest first. */
  lingering: Set<Work>;
  waiting: Waiting;
}

interface Entry {
  begin: (leave: () => void) => void;
  giveUp: (() => void) | undefined;
  again: boolean;
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
      share = { owner, held: 0, lingering: new Set(), waiting: new Waiting() };
      shares.set(owner, share);
    }
    return share;
  };

  /** Spread, so that those which were begun together do not pass on their slots together. */
  const patienceOf = ({ lingering: { size } }: Share, again: boolean): number => {
    step = (step + 1) % steps;
    return again && size > lingering / 4
      ? patienceMs * (crowdedPatience + step / 4)
      : patienceMs * (1 + step / steps);
  };

  const start = (share: Share, { begin, giveUp, again }: Entry): void => {
    taken += 1;
    share.held += 1;
    const work: Work = { share, giveUp, timer: null, place: "slot" };
    const halfMs = patienceOf(share, again) / 2;
    // In two halves: a loop that was blocked reads what has arrived before the second.
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
      const next = share.waiting.take(share.lingering.size > slots ? newestOfHanging : 1);
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
    enter(owner, begin, { giveUp, again = false } = {}) {
      const share = shareOf(owner);
      share.waiting.add({ begin, giveUp, again });
      turns.add(share);
      admit();
    },
  };
}

/** What waits of one owner. */
class Waiting {
  readonly #fresh = new Fifo<Entry>();
  readonly #again = new Fifo<Entry>();
  #turn = 0;

  get size(): number {
    return this.#fresh.size + this.#again.size;
  }

  add(entry: Entry): void {
    (entry.again ? this.#again : this.#fresh).push(entry);
  }

  /** The newest so many times, the oldest; the newest so many times, the oldest of those that are tried again. */
  take(newest: number): Entry | undefined {
    const half = newest + 1;
    this.#turn = (this.#turn + 1) % (2 * half);
    if (this.#turn % half !== 0) return this.#fresh.pop() ?? this.#again.shift();
    return this.#turn === 0
      ? (this.#again.shift() ?? this.#fresh.shift())
      : (this.#fresh.shift() ?? this.#again.shift());
  }
}
