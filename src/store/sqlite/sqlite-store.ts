// Opens the Store on SQLite: lock, schema, and three ways in: the writer's thread, the reader's thread, the loop's own
// connection for look-ups by key. What each call does with them stands with its noun (nouns.ts).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { systemClock } from "../../clock.ts";
import type { Clock } from "../../clock.ts";
import type { Owner } from "../../fairness.ts";
import type { IdMint } from "../../ids.ts";
import type { Log } from "../../log.ts";
import { startThread, type ThreadHandlers } from "../../thread.ts";
import { createChanges } from "../changes.ts";
import { createSpool, type Spool } from "./spool.ts";
import { createBackups } from "./backups.ts";
import { createCommits } from "./commits.ts";
import { createCheckpoints } from "./engine/checkpoints.ts";
import { asDamage, refuseLostDatabase } from "./engine/corruption.ts";
import { createGroupCommit } from "./engine/group-commit.ts";
import { createHeldLog } from "./engine/held-log.ts";
import { lockDirectory } from "./engine/lock.ts";
import { migrate } from "./migrations.ts";
import { databaseName, openReading, openWriting, prepareFiles } from "./engine/open.ts";
import type { ReaderReport } from "./engine/reader.ts";
import { createReaderLink } from "./engine/reader-link.ts";
import { noAccount } from "./engine/write-queue.ts";
import type { WriterReport } from "./engine/writer.ts";
import { createSpace, type Space } from "./engine/space.ts";
import { remote } from "./remote.ts";
import { prepareAtStart } from "./start.ts";
import { refuseHalfRestored } from "./restore.ts";
import { createStatsCalls } from "./stats-calls.ts";
import { createCalls } from "./store-calls.ts";
import { keptTouches } from "./idempotent-write.ts";
import { createLastPassed } from "./last-change.ts";
import { prepareLookups, touches, type Commands, type Lists } from "./nouns.ts";
import type { Store } from "../store.ts";

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
  const { dataDir, node, clock, minFreeShare, onLost } = options;
  const log = options.log.component("store");
  const lock = lockDirectory(dataDir);
  const path = join(dataDir, databaseName);
  const closing = new AsyncDisposableStack();
  closing.defer(() => lock.release());
  try {
    const probe = (): Promise<void> => write.probe(undefined);
    const space = createSpace({ directory: dataDir, clock, minFreeShare, probe });
    closing.defer(() => space.stop());
    const { spool, databaseFile, setup } = openFiles({ ...options, log }, path, space, closing);
    const heldLog = createHeldLog();
    const changes = createChanges(clock, { ...touches, ...keptTouches(touches) });
    const checkpoint = createCheckpoints({ heldLog, log, copy: () => reader.checkpoint() });
    const commits = createCommits({ changes, space, checkpoint, log });
    const writer = createGroupCommit(
      { clock: systemClock, log, ownerOf, startWriter: writerThread(path, heldLog.shared) },
      { ...commits.followUp, onLost },
    );
    closing.defer(() => writer.close());
    const reader = createReaderLink(log, readerThread(path));
    closing.defer(() => reader.close());
    const lookupsDb = openReading(path, 4096);
    closing.defer(() => void lookupsDb.close());
    closing.defer(() => writer.drain());
    const backups = createBackups({ dataDir, minFreeShare, spool, log, heldLog, databaseFile, clock });
    const write = remote<Commands>(writer.call);
    const lists = remote<Lists>(reader.ask);
    const lookups = prepareLookups(lookupsDb);
    const stats = createStatsCalls({ write, lists, lookups, space, clock, log });
    closing.defer(() => stats.stop());
    closing.defer(() => backups.stop());
    const [pragmas] = await Promise.all([writer.ready(), reader.ready()]);
    setup.close();
    return createCalls({
      path,
      pragmas,
      node,
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
      onCommit: commits.listen,
      close: () => closing.disposeAsync(),
    });
  } catch (error) {
    await closing.disposeAsync();
    throw asDamage(error, path);
  }
}

interface OpenFiles {
  spool: Spool;
  /**
   * Beside SQLite's connections, for syncs: opened before and closed after them, since to close a descriptor of the file drops
   * the locks that SQLite holds on it in this process (fcntl).
   */
  databaseFile: number;
  /** The connection that has made the schema; not needed once the threads have theirs. */
  setup: Database;
}

/** The spool and the database under the lock: the one that was written, with this program's schema, and cleared up. */
function openFiles(
  { dataDir, clock, mint, log }: Pick<StoreOptions, "dataDir" | "clock" | "mint" | "log">,
  path: string,
  space: Pick<Space, "noteRefusal">,
  closing: AsyncDisposableStack,
): OpenFiles {
  refuseHalfRestored(dataDir);
  prepareFiles(dataDir);
  const spool = createSpool(join(dataDir, "spool"), (why) => space.noteRefusal(why));
  const databaseFile = openSync(path, "r");
  closing.defer(() => closeSync(databaseFile));
  const setup = openWriting(path);
  closing.defer(() => void setup.close());
  refuseLostDatabase(setup, spool, path);
  migrate(setup, path);
  const files = prepareAtStart(setup, { now: clock.now(), mint, spool });
  if (files > 0) log.info({ files }, "removed files that the last process left and no message names");
  return { spool, databaseFile, setup };
}

/** Starts the writer's thread; of use to who tests the group commit by itself. */
export const writerThread =
  (path: string, held?: SharedArrayBuffer) =>
  (handlers: ThreadHandlers<WriterReport>): Worker =>
    startThread<WriterReport>("writer-thread", import.meta.url, { path, held }, handlers);

const readerThread =
  (path: string) =>
  (handlers: ThreadHandlers<ReaderReport>): Worker =>
    startThread<ReaderReport>("reader-thread", import.meta.url, { path }, handlers);

/** The account whose turn a call takes: a list is of one account, or of many and takes the turn of its first. */
export function ownerOf(arg: unknown): Owner {
  const one: unknown = Array.isArray(arg) ? arg[0] : arg;
  if (typeof one !== "object" || one === null) return noAccount;
  if ("accountKey" in one) return one.accountKey as number;
  return "scope" in one ? ownerOf(one.scope) : noAccount;
}
