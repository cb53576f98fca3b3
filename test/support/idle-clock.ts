// The machine's clock, by which only idle time lets a timer run out: what waits 100 ms has had 100 ms in which this
// process had nothing to do. Where both ends of a conversation are in the test's process, a silence is then a silence,
// and not a machine that is slow or has other work.
import type { Clock, Timer } from "../../src/clock.ts";

const idleMs = (): number => performance.eventLoopUtilization().idle;

export const idleClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs: number, run: () => void): Timer {
    const due = idleMs() + Math.max(0, delayMs);
    let handle: NodeJS.Timeout;
    const arm = (): void => {
      handle = setTimeout(look, Math.max(1, Math.ceil(due - idleMs())));
    };
    const look = (): void => {
      if (idleMs() < due) arm();
      else run();
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  },
};
