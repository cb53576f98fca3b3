// Which of the calls that wait go to the writer next. An owner's calls keep their order, and owners take turns, so that an
// account that writes much waits for itself. One batch is at the writer at a time and whoever comes meanwhile waits for
// it: a batch holds what is written in about ten milliseconds, as the writer has measured each owner's calls.
import type { Owner } from "../fairness.ts";
import { Fifo } from "../fairness/fifo.ts";

const mostCalls = 1000;
const mostBytes = 4 * 1024 * 1024;
const leastBatchMs = 10;
/** What a call of an owner costs that has not been measured. */
const unmeasuredMs = 0.1;
const newestPart = 0.1;
const mostMeasured = 1000;

export interface Turns<T extends Turn> {
  readonly size: number;
  push(item: T): void;
  /** The next batch. `commitMs`: what a commit takes; a batch may be written for as long. */
  take(commitMs: number): T[];
  /** An owner's call was written in `ms`. */
  measured(owner: Owner, ms: number): void;
}

export interface Turn {
  readonly owner: Owner;
  readonly bytes: number;
}

export function createTurns<T extends Turn>(): Turns<T> {
  /** Owners with calls that wait, the next one first. */
  const turns = new Map<Owner, Fifo<T>>();
  const costs = new Map<Owner, number>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    push(item) {
      const own = turns.get(item.owner) ?? new Fifo<T>();
      if (own.size === 0) turns.set(item.owner, own);
      own.push(item);
      size += 1;
    },
    take(commitMs) {
      const mostMs = Math.max(leastBatchMs, commitMs);
      const taken: T[] = [];
      let bytes = 0;
      let ms = 0;
      for (const [owner, own] of turns) {
        const next = own.peek();
        if (!next) break;
        bytes += next.bytes;
        ms += costs.get(owner) ?? unmeasuredMs;
        if (taken.length > 0 && (taken.length >= mostCalls || bytes > mostBytes || ms > mostMs)) break;
        taken.push(next);
        own.shift();
        turns.delete(owner); // behind the others; the loop comes to it again
        if (own.size > 0) turns.set(owner, own);
      }
      size -= taken.length;
      return taken;
    },
    measured(owner, ms) {
      const before = costs.get(owner);
      if (before === undefined && costs.size >= mostMeasured) costs.clear();
      costs.set(owner, before === undefined ? ms : before + (ms - before) * newestPart);
    },
  };
}
