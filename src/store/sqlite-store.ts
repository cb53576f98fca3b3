// Opens the Store on SQLite: lock, schema, and three ways in: the writer's thread, the reader's thread, the loop's own
// connection for look-ups by key. What each call does with them is in store-calls.ts.
import { join } from "node:path";
import { systemClock } from "../clock.ts";
import type { Clock } from "../clock.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import { createChanges } from "./changes.ts";
import { createSpool } from "./content.ts";
import { asDamage, refuseLostDatabase } from "./damage.ts";
import { createGroupCommit } from "./group-commit.ts";
import type { Commit } from "./interface/engine.ts";
import { lockDirectory } from "./lock.ts";
import { createLookups } from "./lookups.ts";
import { migrate } from "./migrations.ts";
import { databaseName, openReading, openWriting, prepareFiles } from "./open.ts";
import { createReaderLink } from "./reader-link.ts";
import { createSpace } from "./space.ts";
import { prepareAtStart } from "./start.ts";
import { createStatsCalls } from "./stats-calls.ts";
import { createCalls } from "./store-calls.ts";
import type { Store } from "./store.ts";
import { checkpointAtBytes, restartAtBytes } from "./wal.ts";
import type { WalState } from "./wal.ts";

export interface StoreOptions {
  dataDir: string;
  clock: Clock;
  log: Log;
  mint: IdMint;
  /** Share of the disk, 0 to 1, under which new mail is refused (and never under 40 MB); 0 switches that off. */
  minFreeShare: number;
  /**
   * The writing thread ended with calls under way. Nobody knows what was kept, and whoever waits for those calls is
   * not answered: the process has to end, and the next start takes back what was in flight.
   */
  onLost(detail: string): void;
}

/** Throws StoreLocked where another process has the directory, SchemaTooNew where a newer program has written it, StoreDamaged where it cannot be read. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { dataDir, clock } = options;
  const log = options.log.component("store");
  const lock = lockDirectory(dataDir);
  const path = join(dataDir, databaseName);
  const closers: (() => void | Promise<void>)[] = [() => lock.release()];
  const closeAll = async (): Promise<void> => {
    for (let close = closers.pop(); close; close = closers.pop()) await close();
  };
  try {
    prepareFiles(dataDir);
    const spool = createSpool(join(dataDir, "spool"), (why) => space.noteRefusal(why));
    const setup = openWriting(path);
    closers.push(() => void setup.close());
    refuseLostDatabase(setup, spool, path);
    migrate(setup, path);
    const swept = prepareAtStart(setup, { now: clock.now(), mint: options.mint, spool });
    if (swept.orphanFiles + swept.deliveriesBack > 0)
      log.info({ ...swept }, "took back what the last process left");

    const listeners = new Set<(commit: Commit) => void>();
    let checkpointing = false;
    const checkpoint = (wal: WalState): void => {
      if (checkpointing || wal.bytes - wal.copiedBytes < checkpointAtBytes || wal.bytes >= restartAtBytes)
        return;
      checkpointing = true;
      reader
        .ask("checkpoint", null)
        .catch((error: Error) =>
          log.warn({ detail: error.message }, "the write-ahead log was not copied; it is tried again"),
        )
        .finally(() => (checkpointing = false));
    };
    const changes = createChanges(clock);
    const writer = createGroupCommit(path, systemClock, log, {
      onWritten: (intent, arg, result) => changes.note(intent, arg, result),
      onCommit(commit, wal) {
        space.noteSuccess();
        for (const listener of listeners) listener(commit);
        checkpoint(wal);
      },
      onLost: options.onLost,
      onRefusal(why, detail) {
        log.error({ why, detail }, "the store could not write");
        space.noteRefusal(why);
      },
    });
    closers.push(() => writer.close());
    const reader = createReaderLink(path, log);
    closers.push(() => reader.close());
    const lookupsDb = openReading(path, 4096);
    closers.push(() => void lookupsDb.close());
    const space = createSpace({
      directory: dataDir,
      clock,
      minFreeShare: options.minFreeShare,
      probe: () => writer.call("probe", undefined),
    });
    closers.push(() => space.stop());
    closers.push(() => writer.drain());
    const lookups = createLookups(lookupsDb);
    const stats = createStatsCalls({ writer, reader, lookups, space, clock, log });
    closers.push(() => stats.stop());
    const [pragmas] = await Promise.all([writer.ready(), reader.ready()]);
    setup.close();
    return createCalls({
      path,
      pragmas,
      clock,
      writer,
      reader,
      lookups,
      changes,
      spool,
      space,
      stats,
      listeners,
      close: closeAll,
    });
  } catch (error) {
    await closeAll();
    throw asDamage(error, path);
  }
}
