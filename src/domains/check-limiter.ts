// Limits concurrent domain checks, in total and per account, so that zones which do not answer delay neither the checks
// of others nor the resolver. Waiting checks are queued per account; the account with the fewest running is next. A
// domain whose check is under way is not checked a second time: a second caller gets the result of the running check.
import { Refusal } from "../errors.ts";

const atOnce = 32;
const atOnceOfAccount = 8;
/** More than that of one account is refused. */
const mostWaiting = 200;
const retryAfterSeconds = 10;

export interface CheckLimiter {
  /** Runs `check`, or waits for its turn. `key` names the domain. Throws Refusal service_overloaded. */
  run<T>(accountKey: number, key: string, check: () => Promise<T>): Promise<T>;
}

interface Line {
  running: number;
  waiting: (() => void)[];
}

export function createCheckLimiter(): CheckLimiter {
  const lines = new Map<number, Line>();
  const underWay = new Map<string, Promise<unknown>>();
  let running = 0;

  const startNext = (): void => {
    while (running < atOnce) {
      const waiting = [...lines.values()].filter((line) => line.waiting.length > 0);
      const [next] = waiting.toSorted((a, b) => a.running - b.running); // that with the fewest under way
      const start = next && next.running < atOnceOfAccount ? next.waiting.shift() : undefined;
      if (!next || !start) return;
      running += 1;
      next.running += 1;
      start();
    }
  };
  const turn = (accountKey: number): Promise<void> => {
    const line = lines.get(accountKey) ?? { running: 0, waiting: [] };
    lines.set(accountKey, line);
    if (line.waiting.length >= mostWaiting)
      throw new Refusal(
        "service_overloaded",
        `The account has ${atOnceOfAccount} domain checks under way and ${mostWaiting} waiting, which is the most; try again later.`,
        { retry_after_seconds: retryAfterSeconds },
      );
    return new Promise((resolve) => {
      line.waiting.push(resolve);
      startNext();
    });
  };
  const end = (accountKey: number): void => {
    running -= 1;
    const line = lines.get(accountKey);
    if (line) line.running -= 1;
    if (line?.running === 0 && line.waiting.length === 0) lines.delete(accountKey);
    startNext();
  };

  return {
    async run<T>(accountKey: number, key: string, check: () => Promise<T>): Promise<T> {
      const name = `${accountKey} ${key}`;
      const known = underWay.get(name);
      if (known) return known as Promise<T>;
      const work = (async () => {
        await turn(accountKey);
        try {
          return await check();
        } finally {
          end(accountKey);
        }
      })().finally(() => underWay.delete(name));
      underWay.set(name, work);
      return work;
    },
  };
}
