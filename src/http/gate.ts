// How much large request body may be in memory at once. A large one asks for
// its size first (body.ts) and waits its turn, its socket unread meanwhile, so that a hundred clients with 36 MB
// each cost time and not memory.
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";

export const gateRule = { totalBytes: 64 * 1024 * 1024, waitMs: 45_000 };

export interface Gate {
  /** Resolves with the release once `bytes` have room; throws service_overloaded after too long a wait. */
  enter(bytes: number): Promise<() => void>;
}

interface Waiter {
  bytes: number;
  admit(): void;
}

export function createGate(clock: Clock, rule = gateRule): Gate {
  let used = 0;
  let queue: Waiter[] = [];

  const release = (bytes: number) => {
    let done = false;
    return () => {
      if (done) return;
      done = true;
      used -= bytes;
      admitWaiting();
    };
  };
  const admitWaiting = (): void => {
    for (let next = queue[0]; next && used + next.bytes <= rule.totalBytes; next = queue[0]) {
      queue.shift();
      used += next.bytes;
      next.admit();
    }
  };

  return {
    enter(wanted) {
      const bytes = Math.min(wanted, rule.totalBytes);
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          bytes,
          admit() {
            timer.cancel();
            resolve(release(bytes));
          },
        };
        const timer = clock.after(rule.waitMs, () => {
          queue = queue.filter((other) => other !== waiter);
          admitWaiting();
          reject(
            new Refusal("service_overloaded", "Too many large requests are being read.", {
              retry_after_seconds: 5,
            }),
          );
        });
        queue.push(waiter);
        admitWaiting();
      });
    },
  };
}
