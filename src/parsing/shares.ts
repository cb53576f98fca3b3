// How many mails are being read for the API at once, in total and for one account, and how many wait. A reading holds its
// share until its response is sent, so that many slow clients of one account do not delay others. A reading that gets
// no turn is refused with the limit's name and a time to retry.
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";

export const readingLimits = { total: 32, perAccount: 4, waitingPerAccount: 64, waitMs: 15_000 };

export interface Shares {
  /** Resolves with the release; throws rate_limit_exceeded or service_overloaded. */
  enter(accountKey: number): Promise<() => void>;
}

interface Waiter {
  accountKey: number;
  admit(): void;
}

const retrySeconds = 5;

export function createShares(clock: Clock, limits = readingLimits): Shares {
  const running = new Map<number, number>();
  let total = 0;
  let queue: Waiter[] = [];

  const hasRoom = (accountKey: number): boolean =>
    total < limits.total && (running.get(accountKey) ?? 0) < limits.perAccount;
  const take = (accountKey: number): (() => void) => {
    total++;
    running.set(accountKey, (running.get(accountKey) ?? 0) + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      total--;
      const left = (running.get(accountKey) ?? 1) - 1;
      if (left > 0) running.set(accountKey, left);
      else running.delete(accountKey);
      admitWaiting();
    };
  };
  /** In the order in which they came; an account that has its share is passed over. */
  const admitWaiting = (): void => {
    while (total < limits.total) {
      const next = queue.find(({ accountKey }) => hasRoom(accountKey));
      if (!next) return;
      queue = queue.filter((other) => other !== next);
      next.admit();
    }
  };

  return {
    enter(accountKey) {
      if (hasRoom(accountKey)) return Promise.resolve(take(accountKey));
      if (queue.filter((waiter) => waiter.accountKey === accountKey).length >= limits.waitingPerAccount)
        return Promise.reject(tooMany(limits));
      return new Promise((resolve, reject) => {
        const timer = clock.after(limits.waitMs, () => {
          queue = queue.filter((other) => other !== waiter);
          const own = (running.get(accountKey) ?? 0) >= limits.perAccount;
          reject(own ? tooMany(limits) : overloaded());
        });
        const waiter: Waiter = {
          accountKey,
          admit() {
            timer.cancel();
            resolve(take(accountKey));
          },
        };
        queue.push(waiter);
      });
    },
  };
}

function tooMany({ perAccount }: typeof readingLimits): Refusal {
  return new Refusal(
    "rate_limit_exceeded",
    `At most ${perAccount} messages of an account are parsed at once, and too many wait. ` +
      "Try again, or ask with Accept: message/rfc822.",
    { retry_after_seconds: retrySeconds },
  );
}

function overloaded(): Refusal {
  return new Refusal("service_overloaded", "Too many messages are being parsed for other accounts.", {
    retry_after_seconds: retrySeconds,
  });
}
