// Back pressure of the queue: at so many unsent recipients no more mail is taken. Once shut, the door stays so for a
// second at least and until a twentieth of the queue is free, so that clients do not see it open and shut with every
// recipient that leaves.
import type { Tally } from "./tally.ts";

const shutAtLeastMs = 1000;
const freeBeforeOpen = 1 / 20;

/** Whether the queue is full for who comes at `at`; `most` 0: never. */
export function createQueueLimit(tally: Pick<Tally, "unsent">): (most: number, at: number) => boolean {
  let shutAt: number | null = null;
  return (most, at) => {
    if (most === 0) return false;
    if (tally.unsent >= most) {
      shutAt = at;
      return true;
    }
    if (shutAt === null) return false;
    const isRecent = at >= shutAt && at - shutAt < shutAtLeastMs;
    if (isRecent || tally.unsent > most - Math.floor(most * freeBeforeOpen)) return true;
    shutAt = null;
    return false;
  };
}
