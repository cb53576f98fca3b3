// Which of the calls that wait go to the writer next. An owner's calls keep their order, and owners share the writer's
// time, so that an account that writes much waits for itself. One batch is at the writer at a time and what comes meanwhile
// waits for it: a batch has what is written in about ten milliseconds, five where owners wait for one another, as the
// writer has measured each owner's calls of each command. What that is wrong about, the writer cuts off and gives back.
import type { Owner } from "../../../fairness.ts";
import { Fifo } from "../../../fairness/fifo.ts";

const mostCalls = 1000;
/** Of the bytes of a batch, but for a single call of more. */
export const mostBytes = 4 * 1024 * 1024;
const batchMs = 10;
/** Where several owners wait: each waits for the batch at the writer and for its own. */
const sharedBatchMs = 5;
/** On a slow disk a batch may be written for as long as its commit takes, and no longer than this: everybody waits for it. */
const longestBatchMs = 20;
/** However many owners there are, one has this of a batch. */
const leastShareMs = 0.2;
/** What a call costs whose like has not been measured. */
const unmeasuredMs = 0.1;
const newestPart = 0.1;
const mostMeasured = 1000;
/** Whose the calls are that are of no account, claims above all: all accounts wait for them, so half of the time is theirs. */
export const noAccount = "";

export interface WriteQueue<T extends QueuedWrite> {
  readonly size: number;
  push(item: T): void;
  /**
   * The next batch, who has least of it first, and how long it may be written. `commitMs`: what a commit takes; on a slow disk
   * a batch may be written for as long, within limits.
   */
  take(commitMs: number): { calls: T[]; withinMs: number };
  /** What the writer's time did not suffice for: each owner's calls are its next ones again. */
  putBack(calls: readonly T[]): void;
  /** So many calls of an owner, one behind the other and of one command, were written in `ms`. */
  measured(like: Pick<QueuedWrite, "owner" | "command">, ms: number, calls: number): void;
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
    while (queues.size > 0 && ms < mostMs && !full) {
      const shareMs = Math.max(mostMs / queues.size, leastShareMs);
      const round = [...queues];
      for (const [owner, own] of round) {
        if (ms >= 2 * mostMs) break;
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
      if (queues.size > 0) return queue(item);
      together.push(item);
      togetherBytes += item.bytes;
    },
    take(commitMs) {
      const within = (ms: number): number => Math.min(Math.max(ms, commitMs), longestBatchMs);
      if (together.length > 0) {
        const fits =
          together.length <= mostCalls && togetherBytes <= mostBytes && msOf(together) <= within(batchMs);
        const all = takeTogether();
        if (fits) {
          size = 0;
          return { calls: all, withinMs: within(batchMs) };
        }
        all.forEach(queue);
      }
      const withinMs = within(queues.size > 1 ? sharedBatchMs : batchMs);
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
