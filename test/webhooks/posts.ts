// The dispatcher between a store in memory and posts that a test answers.
import { silentLog } from "../../src/log.ts";
import { createDispatcher } from "../../src/webhooks/dispatcher.ts";
import type { Answer } from "../../src/webhooks/post.ts";
import type { DeadLetter } from "../../src/webhooks/results.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { MemoryStore } from "./memory-store.ts";
import { scheduleMs as specified, secret } from "./rig.ts";

/** The dispatcher over posts that a test answers by hand. */
export function bench(scheduleMs: readonly number[] = specified) {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const letters: DeadLetter[] = [];
  const started: {
    endpoint: number;
    event: string;
    attempt: number;
    secret: string;
    /** null: nobody was reached. */
    answer(status: number | null): void;
  }[] = [];
  const dispatcher = createDispatcher({
    store,
    clock,
    scheduleMs,
    owner: "boot",
    log: silentLog,
    onDeadLetter: (letter) => letters.push(letter),
    post: {
      open: () => {
        throw new Error("no network here");
      },
      post: (_connect, endpoint, event, attempt) =>
        new Promise<Answer>((resolve) => {
          const answer = (status: number | null): void =>
            resolve({
              delivered: status !== null && status < 300,
              status,
              durationMs: 1,
              failure: null,
              body: null,
            });
          started.push({ endpoint: endpoint.key, event: event.id, attempt, secret: endpoint.secret, answer });
        }),
    },
  });
  store.addEndpoint({ key: 1, url: "https://one.example/", secret });
  store.addEndpoint({ key: 2, url: "https://two.example/", secret });
  return { clock, store, letters, started, dispatcher };
}
/** Until no more attempts begin: a turn of the loop begins a few. */
export async function allBegun(started: readonly unknown[]): Promise<void> {
  for (let had = -1; had !== started.length;) {
    had = started.length;
    await settle();
  }
}
