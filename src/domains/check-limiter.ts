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

interface AccountChecks {
  running: number;
  waiting: (() => void)[];
}

export function createCheckLimiter(): CheckLimiter {
  const accounts = new Map<number, AccountChecks>();
  const underWay = new Map<string, Promise<unknown>>();
  let running = 0;

  const startNext = (): void => {
    while (running < atOnce) {
      const waiting = [...accounts.values()].filter((account) => account.waiting.length > 0);
      const [next] = waiting.toSorted((a, b) => a.running - b.running); // that with the fewest under way
      const start = next && next.running < atOnceOfAccount ? next.waiting.shift() : undefined;
      if (!next || !start) return;
      running += 1;
      next.running += 1;
      start();
    }
  };
  const turn = (accountKey: number): Promise<void> => {
    const account = accounts.get(accountKey) ?? { running: 0, waiting: [] };
    accounts.set(accountKey, account);
    if (account.waiting.length >= mostWaiting)
      throw new Refusal(
        "service_overloaded",
        `The account has ${atOnceOfAccount} domain checks under way and ${mostWaiting} waiting, which is the most; try again later.`,
        { retry_after_seconds: retryAfterSeconds },
      );
    return new Promise((resolve) => {
      account.waiting.push(resolve);
      startNext();
    });
  };
  const end = (accountKey: number): void => {
    running -= 1;
    const account = accounts.get(accountKey);
    if (account) account.running -= 1;
    if (account?.running === 0 && account.waiting.length === 0) accounts.delete(accountKey);
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
