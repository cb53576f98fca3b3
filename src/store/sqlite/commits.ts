// What follows the commits of the writer's thread, on the loop. What a write changes for Last-Modified is noted before its
// caller is answered; after its batch those who listen hear of it, and the write-ahead log is looked at. What the disk
// refuses is logged, and the space knows of it.
import type { Log } from "../../log.ts";
import type { Changes } from "../changes.ts";
import type { Commit, EngineStore } from "../interface/engine.ts";
import type { GroupCommitListeners } from "./engine/group-commit.ts";
import type { Space } from "./engine/space.ts";
import type { WalState } from "./engine/wal.ts";

export interface Commits {
  /** Called after each commit, until the answer is called. */
  listen: EngineStore["onCommit"];
  followUp: Omit<GroupCommitListeners, "onLost">;
}

export function createCommits(deps: {
  changes: Pick<Changes, "note">;
  space: Pick<Space, "noteRefusal" | "noteSuccess">;
  checkpoint(wal: WalState): void;
  log: Log;
}): Commits {
  const { changes, space, checkpoint, log } = deps;
  const listeners = new Set<(commit: Commit) => void>();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    followUp: {
      onWritten: (command, arg, result) => changes.note(command, arg, result),
      onCommit(commit, wal) {
        space.noteSuccess();
        for (const listener of listeners) listener(commit);
        checkpoint(wal);
      },
      onRefusal(why, detail) {
        log.error({ why, detail }, "the store could not write");
        space.noteRefusal(why);
      },
    },
  };
}
