// When the problem of a pool (problems.ts) is reported: once for each cause, and that of a pool without addresses only when
// mail waits for it. Nothing is reported before the addresses were checked: until then their status is from before the
// start.
import type { Log } from "../log.ts";
import type { Pool } from "../model/ip-pool.ts";
import { problemOf, subjectOf, type PoolProblem } from "./problems.ts";

export interface ProblemReports {
  /** The pool as it is now. */
  note(pool: Pool): void;
  /** Mail waits for an address of the pool. */
  noteWaiting(pool: Pool): void;
  /** The pool is gone. */
  forget(pool: Pool): void;
  /** The addresses have been checked. */
  begin(): void;
  onProblem(listener: (problem: PoolProblem) => void): void;
}

export function createProblemReports(hostname: string, log: Log): ProblemReports {
  /** What was reported of pools without a usable address, or without one of a family. */
  const reported = new Map<string, string>();
  /** Pools without addresses that mail waits for. */
  const awaited = new Set<string>();
  const listeners: ((problem: PoolProblem) => void)[] = [];
  let begun = false;

  const note = (pool: Pool): void => {
    if (!begun) return;
    const key = keyOf(pool);
    const problem = problemOf(pool, hostname);
    if (problem === null || problem.waits === null) return noteRecovery(pool, key);
    const subject = subjectOf(problem);
    if (subject === reported.get(key) || (problem.addresses.length === 0 && !awaited.has(key))) return;
    reported.set(key, subject);
    log.error({ pool: pool.name, addresses: problem.addresses }, `${subject}; mail that needs one waits`);
    for (const listener of listeners) listener(problem);
  };

  /** An address that was not checked yet does not end the problem. */
  const noteRecovery = (pool: Pool, key: string): void => {
    if (pool.addresses.some(({ bindable }) => bindable === null)) return;
    awaited.delete(key);
    if (!reported.delete(key)) return;
    log.info({ pool: pool.name }, "the pool has a usable address again; its mail is sent");
  };

  return {
    note,
    noteWaiting(pool) {
      const key = keyOf(pool);
      if (awaited.has(key)) return;
      awaited.add(key);
      note(pool);
    },
    forget(pool) {
      reported.delete(keyOf(pool));
      awaited.delete(keyOf(pool));
    },
    begin: () => void (begun = true),
    onProblem: (listener) => void listeners.push(listener),
  };
}

const keyOf = ({ accountKey, name }: Pool): string => `${accountKey}.${name}`;
