// What the dispatcher has under way: nothing new begins once it stops, and the stop waits for the rest.
export interface Work {
  running(): boolean;
  start(): void;
  /** `finish` waits for it. */
  track(work: Promise<void>): void;
  /** Nothing new begins. */
  stop(): void;
  /** Waits for all that is under way, and for what that brings. */
  finish(): Promise<void>;
}

export function createWork(): Work {
  const busy = new Set<Promise<void>>();
  let running = false;
  return {
    running: () => running,
    start: () => void (running = true),
    track(work) {
      busy.add(work);
      void work.finally(() => busy.delete(work));
    },
    stop: () => void (running = false),
    async finish() {
      while (busy.size > 0) await Promise.allSettled(busy);
    },
  };
}
