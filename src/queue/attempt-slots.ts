// The concurrency slots of all attempts together. Accounts share them (fairness.ts), so that one account whose receivers
// or name servers hang leaves slots to the others. Past half of all, a ready queue holds at most two, so that destinations
// that hang leave slots to the rest; one of whose attempts has just ended at a server may have as many as it wants, up to
// five eighths of all. Ready queues that find no slot are noted and run again by turns.
import type { Clock } from "../clock.ts";
import { hasShare, type Owner } from "../fairness.ts";

export const attemptsMost = 2000;
const shareWhenCrowded = 2;
/** Shares of all slots. */
const crowdedFrom = 1 / 2;
const crowdedForAllFrom = 5 / 8;
/** A queue whose last attempt ended at a server longer ago may hang. */
const movesForMs = 2_000;
/** Ready queues of one account that are run again for a freed slot; the next freed slot goes on behind them. */
const turnsMost = 16;

/** What shares slots: its account, and how many it holds. */
export interface SlotUser {
  readonly account: Owner;
  taken: number;
  /** When an attempt last ended that had reached a server, monotonic milliseconds; null: none has. */
  movedAt: number | null;
}

export interface AttemptSlots<User extends SlotUser> {
  /** How many more the user may begin now, at most `wanted`; with 0 it is noted, and run when slots are free. */
  room(user: User, wanted: number): number;
  take(user: User): void;
  /** The user may begin none now. */
  isFull(user: User): boolean;
  /** Frees a slot. `reached`: a server was connected. */
  leave(user: User, reached: boolean): void;
  /** Runs those that were noted, accounts by turns, as far as there are slots. */
  runWaiting(run: (user: User) => void): void;
}

export function createAttemptSlots<User extends SlotUser>(
  clock: Pick<Clock, "monotonic">,
  most = attemptsMost,
): AttemptSlots<User> {
  const held = new Map<Owner, number>();
  const waiting = new Map<Owner, Set<User>>();
  let taken = 0;

  const mayTake = (account: Owner): boolean => taken < most && hasShare(held.get(account) ?? 0, taken, most);

  /** It may hold no more than its share when the slots are crowded. */
  const isCrowded = ({ movedAt }: User): boolean => {
    const moves = movedAt !== null && clock.monotonic() - movedAt < movesForMs;
    return taken > most * (moves ? crowdedForAllFrom : crowdedFrom);
  };

  const note = (user: User): void => {
    const own = waiting.get(user.account);
    if (own) own.add(user);
    else waiting.set(user.account, new Set([user]));
  };

  /** One account's turn: until its share is used up, or enough of its ready queues were run. */
  const runOf = (account: Owner, users: Set<User>, run: (user: User) => void): void => {
    // With nothing under way there is no later freed slot that would go on behind them.
    const next = firstOf(users, taken > 0 ? turnsMost : users.size);
    let had = false;
    for (const user of next) {
      if (!mayTake(account)) break;
      users.delete(user); // one that finds no slot is noted again, behind the others
      had = true;
      run(user);
    }
    // One that did not come to its turn keeps its place before those that did.
    if (!had || waiting.get(account) !== users) return;
    waiting.delete(account);
    if (users.size > 0) waiting.set(account, users);
  };

  return {
    room(user, wanted) {
      const share = isCrowded(user) ? Math.min(wanted, shareWhenCrowded - user.taken) : wanted;
      const room = mayTake(user.account) ? Math.min(share, most - taken) : 0;
      if (room <= 0) note(user);
      return Math.max(0, room);
    },
    isFull: (user) => !mayTake(user.account) || (isCrowded(user) && user.taken >= shareWhenCrowded),
    take(user) {
      user.taken += 1;
      taken += 1;
      held.set(user.account, (held.get(user.account) ?? 0) + 1);
    },
    leave(user, reached) {
      if (reached) user.movedAt = clock.monotonic();
      user.taken -= 1;
      taken -= 1;
      const left = (held.get(user.account) ?? 1) - 1;
      if (left > 0) held.set(user.account, left);
      else held.delete(user.account);
    },
    runWaiting(run) {
      const now = [...waiting]; // those that are noted meanwhile wait for the next slot
      for (const [account, users] of now) runOf(account, users, run);
    },
  };
}

function firstOf<T>(items: Iterable<T>, most: number): T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length >= most) break;
    first.push(item);
  }
  return first;
}
