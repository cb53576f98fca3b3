// Whether a backup holds a snapshot of the database, as the loop and the writer's thread share it. While one does, the
// write-ahead log cannot be restarted: a restart would wait for that reader in vain, with every write behind it. The log
// grows meanwhile by all that is written; the backup looks at the free space between its steps and ends before that is scarce.
export interface HeldLog {
  /** Handed to the writer's thread. */
  readonly shared: SharedArrayBuffer;
  hold(): void;
  release(): void;
  held(): boolean;
}

export function createHeldLog(): HeldLog {
  const shared = new SharedArrayBuffer(4);
  const flag = new Int32Array(shared);
  return {
    shared,
    hold: () => void Atomics.store(flag, 0, 1),
    release: () => void Atomics.store(flag, 0, 0),
    held: () => Atomics.load(flag, 0) === 1,
  };
}

/** In the thread. */
export function isHeld(shared: SharedArrayBuffer | undefined): boolean {
  return shared !== undefined && Atomics.load(new Int32Array(shared), 0) === 1;
}
