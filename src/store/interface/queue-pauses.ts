// The calls that keep the pauses of parts of the queue.
import type { PauseOf, QueuePause } from "../../model/queue-pause.ts";

export interface QueuePauseStore {
  queuePauses(): Promise<QueuePause[]>;
  /** Puts a pause, or changes when it ends; those that are over by `now` are deleted. */
  putQueuePause(pause: QueuePause, now: number): Promise<void>;
  /** False: there was none. */
  removeQueuePause(of: PauseOf): Promise<boolean>;
}
