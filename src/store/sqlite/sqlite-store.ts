// Opens the Store on SQLite: lock, schema, and three ways in: the writer's thread, the reader's thread, the loop's own
// connection for look-ups by key. What each call does with them stands with its noun (nouns.ts).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { systemClock } from "../../clock.ts";
import type { Clock } from "../../clock.ts";
import type { Owner } from "../../fairness.ts";
import type { IdMint } from "../../ids.ts";
import type { Log } from "../../log.ts";
import { startThread, type ThreadHandlers } from "../../thread.ts";
import { createChanges } from "../changes.ts";
import { createSpool } from "./spool.ts";
import { createBackups } from "./backups.ts";
import { asDamage, refuseLostDatabase } from "./engine/corruption.ts";
import { createGroupCommit } from "./engine/group-commit.ts";
import { createHeldLog } from "./engine/held-log.ts";
import type { Commit } from "../interface/engine.ts";
import { lockDirectory } from "./engine/lock.ts";
import { migrate } from "./migrations.ts";
import { databaseName, openReading, openWriting, prepareFiles } from "./engine/open.ts";
import type { ReaderReport } from "./engine/reader.ts";
import { createReaderLink } from "./engine/reader-link.ts";
import { noAccount } from "./engine/write-queue.ts";
import type { WriterReport } from "./engine/writer.ts";
import { createSpace } from "./engine/space.ts";
import { remote } from "./remote.ts";
import { prepareAtStart } from "./start.ts";
import { refuseHalfRestored } from "./restore.ts";
import { createStatsCalls } from "./stats-calls.ts";
import { createCalls } from "./store-calls.ts";
import { keptTouches } from "./idempotent-write.ts";
import { createLastPassed } from "./last-change.ts";
import { prepareLookups, touches, type Commands, type Lists } from "./nouns.ts";
import type { Store } from "../store.ts";
import { checkpointAtBytes, restartAtBytes } from "./engine/wal.ts";
import type { WalState } from "./engine/wal.ts";

export interface StoreOptions {
  dataDir: string;
  /** The name of this node. */
  node: string;
  clock: Clock;
  log: Log;
  mint: IdMint;
  /** Share of the disk, 0 to 1, under which new mail is refused (and never under 40 MB); 0 switches that off. */
  minFreeShare: number;
  /**
   * The writing thread ended with calls under way. What was kept is unknown, and the callers that wait for those calls are
   * not answered: the process has to end, and the next start takes back what was in flight.
   */
  onLost(detail: string): void;
}

/** Throws StoreLocked where another process has the directory, SchemaRefused where its schema is not one of this program's, StoreDamaged where it cannot be read. */
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
    refuseHalfRestored(dataDir);
    prepareFiles(dataDir);
    const spool = createSpool(join(dataDir, "spool"), (why) => space.noteRefusal(why));
    // Beside SQLite's connections, for syncs: opened before and closed after them, since to close a descriptor of the file drops
    // the locks that SQLite holds on it in this process (fcntl).
    const databaseFile = openSync(path, "r");
    closers.push(() => closeSync(databaseFile));
    const setup = openWriting(path);
    closers.push(() => void setup.close());
    refuseLostDatabase(setup, spool, path);
    migrate(setup, path);
    const files = prepareAtStart(setup, { now: clock.now(), mint: options.mint, spool });
    if (files > 0) log.info({ files }, "removed files that the last process left and no message names");

    const listeners = new Set<(commit: Commit) => void>();
    const heldLog = createHeldLog();
    let checkpointing = false;
    const checkpoint = (wal: WalState): void => {
      if (heldLog.held()) return; // of what is written during a backup nothing can be copied
      if (checkpointing || wal.bytes - wal.copiedBytes < checkpointAtBytes || wal.bytes >= restartAtBytes)
        return;
      checkpointing = true;
      reader
        .checkpoint()
        .catch((error: Error) =>
          log.warn(
            { detail: error.message },
            "the checkpoint of the write-ahead log failed; it is tried again",
          ),
        )
        .finally(() => (checkpointing = false));
    };
    const changes = createChanges(clock, { ...touches, ...keptTouches(touches) });
    const writer = createGroupCommit(
      { clock: systemClock, log, ownerOf, startWriter: writerThread(path, heldLog.shared) },
      {
        onWritten: (command, arg, result) => changes.note(command, arg, result),
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
      },
    );
    const write = remote<Commands>(writer.call);
    closers.push(() => writer.close());
    const reader = createReaderLink(log, (handlers) =>
      startThread<ReaderReport>("reader-thread", import.meta.url, { path }, handlers),
    );
    const lists = remote<Lists>(reader.ask);
    closers.push(() => reader.close());
    const lookupsDb = openReading(path, 4096);
    closers.push(() => void lookupsDb.close());
    const space = createSpace({
      directory: dataDir,
      clock,
      minFreeShare: options.minFreeShare,
      probe: () => write.probe(undefined),
    });
    closers.push(() => space.stop());
    closers.push(() => writer.drain());
    const { minFreeShare } = options;
    const backups = createBackups({ dataDir, minFreeShare, spool, log, heldLog, databaseFile, clock });
    const lookups = prepareLookups(lookupsDb);
    const stats = createStatsCalls({ write, lists, lookups, space, clock, log });
    closers.push(() => stats.stop());
    closers.push(() => backups.stop());
    const [pragmas] = await Promise.all([writer.ready(), reader.ready()]);
    setup.close();
    return createCalls({
      path,
      pragmas,
      node: options.node,
      clock,
      write,
      call: writer.call,
      lists,
      checkpoint: reader.checkpoint,
      lookups,
      lastPassed: createLastPassed(lookupsDb),
      changes,
      spool,
      space,
      writerAnswers: writer.answers,
      backups,
      stats,
      listeners,
      close: closeAll,
    });
  } catch (error) {
    await closeAll();
    throw asDamage(error, path);
  }
}

/** Starts the writer's thread; of use to who tests the group commit by itself. */
export const writerThread =
  (path: string, held?: SharedArrayBuffer) =>
  (handlers: ThreadHandlers<WriterReport>): Worker =>
    startThread<WriterReport>("writer-thread", import.meta.url, { path, held }, handlers);

/** The account whose turn a call takes: a list is of one account, or of many and takes the turn of its first. */
export function ownerOf(arg: unknown): Owner {
  const one: unknown = Array.isArray(arg) ? arg[0] : arg;
  if (typeof one !== "object" || one === null) return noAccount;
  if ("accountKey" in one) return one.accountKey as number;
  return "scope" in one ? ownerOf(one.scope) : noAccount;
}
