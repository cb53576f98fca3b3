// The Store, made of the calls that every noun declares, of those of the engine, and of the write that is kept with its
// answer.
import { statSync } from "node:fs";
import type { Changes } from "../changes.ts";
import type { BackupStore } from "../interface/backups.ts";
import type { EngineStore } from "../interface/engine.ts";
import { storingText } from "../storable-text.ts";
import type { Store } from "../store.ts";
import { createByteCache, createRowCache } from "../cache.ts";
import type { Call } from "./engine/group-commit.ts";
import type { PragmasReadBack } from "./engine/open.ts";
import type { Space } from "./engine/space.ts";
import type { createLastPassed } from "./last-change.ts";
import { callsOf, type Commands, type Lists, type Lookups } from "./nouns.ts";
import type { Common } from "./noun.ts";
import type { Remote } from "./remote.ts";
import { dropDeliveries } from "./webhook-delivery-removal.ts";
import { withIdempotency } from "./with-idempotency.ts";

/** Enough for what is in flight; a message that is deferred is read back when its time comes. */
const contentCacheBytes = 2 * 1024 * 1024;

export interface CallParts extends Pick<Common, "node" | "clock" | "spool" | "stats" | "checkpoint"> {
  path: string;
  pragmas: PragmasReadBack;
  write: Remote<Commands>;
  /** The same, as the engine takes it. */
  call: Call;
  /** Clearing up in pieces once a write is done; at once where nothing else is given. */
  after?: Common["after"];
  /** Writes that go ahead of a write, in pieces; `write` itself where nothing else is given. */
  ahead?: Remote<Commands>;
  lookups: Lookups;
  lists: Remote<Lists>;
  lastPassed: ReturnType<typeof createLastPassed>;
  changes: Pick<Changes, "last" | "revision">;
  space: Space;
  writerAnswers: EngineStore["writerAnswers"];
  backups: BackupStore;
  onCommit: EngineStore["onCommit"];
  close(): Promise<void>;
}

export function createCalls(parts: CallParts): Store {
  const { write, call, ahead = write, after = (work) => work() } = parts;
  const calls = callsOf({
    ...parts,
    ahead,
    after,
    content: createByteCache(contentCacheBytes),
    rows: createRowCache(parts.changes.revision),
    dropDeliveries: (key) => dropDeliveries(ahead, key),
  });
  return storingText({
    ...calls,
    ...engineCalls(parts),
    copyInto: parts.backups.copyInto,
    check: parts.backups.check,
    withIdempotency: (request, effect, answer) =>
      withIdempotency(
        call,
        (view) => createCalls({ ...parts, ...view, ahead: write }),
        request,
        effect,
        answer,
      ),
  });
}

function engineCalls(parts: CallParts): Omit<EngineStore, "secret"> {
  const { path, pragmas, clock, lastPassed, changes, space } = parts;
  let closed: Promise<void> | null = null;
  return {
    health: async () => ({
      schemaVersion: pragmas.schemaVersion,
      freeBytes: space.freeBytes(),
      writable: closed === null && space.writable(),
      full: space.full(),
      engine: {
        journal_mode: pragmas.journalMode,
        synchronous: pragmas.synchronous,
        wal_bytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      },
    }),
    async lastChange(accountKey, of) {
      const change = changes.last(accountKey, of);
      // Some of it changes with time alone, and no row is touched by that.
      const passed = lastPassed(accountKey, of, clock.now());
      return { ...change, at: Math.max(change.at, passed === null ? 0 : secondAfter(passed)) };
    },
    full: async () => space.full(),
    writerAnswers: parts.writerAnswers,
    onCommit: parts.onCommit,
    close: () => (closed ??= parts.close()),
  };
}

/** The start of the second after a moment. */
function secondAfter(ms: number): number {
  return (Math.floor(ms / 1000) + 1) * 1000;
}
