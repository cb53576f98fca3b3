// Whether a backup holds a snapshot of the database, as the loop, the writer's thread and the backup's share it: at the end
// of its copy, for a second or so. While it does, the write-ahead log cannot be restarted: a restart would wait for that reader
// in vain, with every write behind it.
export interface HeldLog {
  /** Handed to the threads. */
  readonly shared: SharedArrayBuffer;
  hold(): void;
  release(): void;
  held(): boolean;
}

export function createHeldLog(shared = new SharedArrayBuffer(4)): HeldLog {
  const flag = new Int32Array(shared);
  return {
    shared,
    hold: () => void Atomics.store(flag, 0, 1),
    release: () => void Atomics.store(flag, 0, 0),
    held: () => Atomics.load(flag, 0) === 1,
  };
}

/** In the writer's thread. */
export function isHeld(shared: SharedArrayBuffer | undefined): boolean {
  return shared !== undefined && Atomics.load(new Int32Array(shared), 0) === 1;
}
