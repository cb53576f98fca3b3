// Which of the calls that wait go to the writer next. An owner's calls keep their order, and owners share the writer's
// time, so that an account that writes much waits for itself. One batch is at the writer at a time and what comes meanwhile
// waits for it: a batch has what is written in about ten milliseconds, or, where several accounts have written lately, in
// half a millisecond or in as long as a commit takes, as the writer has measured each owner's calls of each command. What
// that is wrong about, the writer cuts off and gives back.
import type { Owner } from "../../../fairness.ts";
import { Fifo } from "../../../fairness/fifo.ts";

const mostCalls = 1000;
/** Of the bytes of a batch, but for a single call of more. */
export const mostBytes = 4 * 1024 * 1024;
const batchMs = 10;
/**
 * Where several accounts write: who comes meanwhile waits for the batch at the writer and for its own, each with a commit that
 * takes the longer the more was written. Longer where many owners wait, and no longer than `mostSharedMs`.
 */
const sharedBatchMs = 0.5;
const mostSharedMs = 5;
/** Who wrote so long ago still counts as writing. */
const latelyMs = 1000;
/** On a slow disk a batch may be written for as long as a commit takes, and no longer than this: everybody waits for it. */
const longestBatchMs = 20;
/** A batch that is as full leaves: another round of shares might write as much again. */
const fullPart = 0.75;
/** However many owners there are, one has this of a batch. */
const leastShareMs = 0.2;
/** What a call costs whose like has not been measured. */
const unmeasuredMs = 0.1;
const newestPart = 0.1;
/** What a commit takes is the least that it took lately: the rest of a long one is what its batch wrote. */
const longerPart = 0.01;
const mostMeasured = 1000;
/** Whose the calls are that are of no account, claims above all: all accounts wait for them, so half of the time is theirs. */
export const noAccount = "";

export interface WriteQueue<T extends QueuedWrite> {
  readonly size: number;
  push(item: T): void;
  /**
   * The next batch, who has least of it first, and how long it may be written. `nowMs`: of a clock that does not go back.
   */
  take(nowMs: number): { calls: T[]; withinMs: number };
  /** What the writer's time did not suffice for: each owner's calls are its next ones again. */
  putBack(calls: readonly T[]): void;
  /** So many calls of an owner, one behind the other and of one command, were written in `ms`. */
  measured(like: Pick<QueuedWrite, "owner" | "command">, ms: number, calls: number): void;
  /** A batch that wrote something was committed, in so long. */
  committed(ms: number): void;
}

export interface QueuedWrite {
  readonly owner: Owner;
  readonly command: string;
  readonly bytes: number;
}

interface OwnerQueue<T> {
  waiting: Fifo<T>;
  /** Time that it has been given and not used: a call that costs more than a share waits until it has enough. */
  creditMs: number;
}

export function createWriteQueue<T extends QueuedWrite>(): WriteQueue<T> {
  /** What waits, in its order, as long as it fits into one batch. */
  let together: T[] = [];
  let togetherBytes = 0;
  /** Where it does not: owners with calls that wait, the next one first. */
  const queues = new Map<Owner, OwnerQueue<T>>();
  const costs = createCosts();
  const lately = createLately();
  let syncMs: number | null = null;
  let size = 0;

  const queueOf = (owner: Owner): OwnerQueue<T> => {
    let own = queues.get(owner);
    if (!own) {
      own = { waiting: new Fifo(), creditMs: 0 };
      queues.set(owner, own);
    }
    return own;
  };

  const queue = (item: T): void => queueOf(item.owner).waiting.push(item);

  const msOf = (items: readonly T[]): number => {
    let ms = 0;
    for (const item of items) ms += costs.of(item);
    return ms;
  };

  const takeTogether = (): T[] => {
    const all = together;
    together = [];
    togetherBytes = 0;
    return all;
  };

  /** Every owner gets its share of `mostMs`; a call that costs more waits until its owner has the credit. */
  const takeByOwner = (mostMs: number): T[] => {
    const taken = new Map<Owner, { calls: T[]; ms: number }>();
    let count = 0;
    let bytes = 0;
    let ms = 0;
    /** Nothing more of this batch's bytes or calls is left for an owner whose turn it was. */
    let full = false;
    while (queues.size > 0 && ms < mostMs * fullPart && !full) {
      const shareMs = Math.max(mostMs / queues.size, leastShareMs);
      const round = [...queues];
      for (const [owner, own] of round) {
        if (ms >= mostMs) break;
        own.creditMs += owner === noAccount ? Math.max(shareMs, mostMs / 2) : shareMs;
        const had = taken.get(owner) ?? { calls: [], ms: 0 };
        taken.set(owner, had);
        let fits = true;
        for (let next = own.waiting.peek(); next; next = own.waiting.peek()) {
          const cost = costs.of(next);
          if (own.creditMs < cost) break;
          fits = count === 0 || (count < mostCalls && bytes + next.bytes <= mostBytes);
          if (!fits) break;
          had.calls.push(next);
          had.ms += cost;
          count += 1;
          own.waiting.shift();
          own.creditMs -= cost;
          bytes += next.bytes;
          ms += cost;
        }
        if (!fits) {
          full = true;
          own.creditMs = Math.min(own.creditMs, mostMs);
          continue; // it keeps its place, and is the first of the next batch
        }
        queues.delete(owner); // behind the others
        if (own.waiting.size > 0) queues.set(owner, own);
      }
    }
    size -= count;
    // Whose calls cost more than was reckoned is cut off himself.
    return [...taken.values()].sort((a, b) => a.ms - b.ms).flatMap(({ calls }) => calls);
  };

  return {
    get size() {
      return size;
    },
    push(item) {
      size += 1;
      lately.wrote(item.owner);
      if (queues.size > 0) return queue(item);
      together.push(item);
      togetherBytes += item.bytes;
    },
    take(nowMs) {
      const accountsWaiting = queues.size - (queues.has(noAccount) ? 1 : 0);
      const shared = lately.several(nowMs) || accountsWaiting > 1;
      const within = (ms: number): number => Math.min(Math.max(ms, syncMs ?? 0), longestBatchMs);
      if (together.length > 0) {
        const withinMs = within(shared ? sharedBatchMs : batchMs);
        const fits = together.length <= mostCalls && togetherBytes <= mostBytes && msOf(together) <= withinMs;
        const all = takeTogether();
        if (fits) {
          size = 0;
          return { calls: all, withinMs };
        }
        all.forEach(queue);
      }
      const sharedMs = Math.min(Math.max(sharedBatchMs, leastShareMs * queues.size), mostSharedMs);
      const withinMs = within(shared ? sharedMs : batchMs);
      return { calls: takeByOwner(withinMs), withinMs };
    },
    putBack(calls) {
      if (calls.length === 0) return;
      takeTogether().forEach(queue);
      for (const call of calls.toReversed()) {
        const own = queueOf(call.owner);
        own.waiting.unshift(call);
        own.creditMs += costs.of(call);
      }
      size += calls.length;
    },
    measured: costs.measured,
    committed(ms) {
      syncMs = syncMs === null || ms < syncMs ? ms : syncMs + (ms - syncMs) * longerPart;
    },
  };
}

/** Whether several accounts have written within the last second or two. */
function createLately() {
  let began = 0;
  let before = new Set<Owner>();
  let now = new Set<Owner>();
  /** Who wrote since the last look, whose time is not known before the next one. */
  let latest = new Set<Owner>();
  return {
    wrote(owner: Owner): void {
      if (owner !== noAccount) latest.add(owner);
    },
    several(nowMs: number): boolean {
      if (nowMs - began >= latelyMs) {
        before = nowMs - began < 2 * latelyMs ? now : new Set();
        began = nowMs;
        now = new Set();
      }
      for (const owner of latest) now.add(owner);
      latest = new Set();
      const [one] = now;
      return now.size > 1 || before.size > 1 || (one !== undefined && before.size > 0 && !before.has(one));
    },
  };
}

/** What a call of each owner and command costs, the mean of those that were measured, the newest ones most. */
function createCosts() {
  const byCommand = new Map<string, Map<Owner, number>>();
  return {
    of({ owner, command }: Pick<QueuedWrite, "owner" | "command">): number {
      return byCommand.get(command)?.get(owner) ?? unmeasuredMs;
    },
    measured({ owner, command }: Pick<QueuedWrite, "owner" | "command">, ms: number, calls: number): void {
      let costs = byCommand.get(command);
      if (!costs) byCommand.set(command, (costs = new Map()));
      const mean = ms / calls;
      const before = costs.get(owner);
      if (before === undefined && costs.size >= mostMeasured) costs.clear();
      const newest = calls === 1 ? newestPart : 1 - (1 - newestPart) ** calls;
      costs.set(owner, before === undefined ? mean : before + (mean - before) * newest);
    },
  };
}
