// Group commit, the writer's side: a batch of calls in one BEGIN IMMEDIATE transaction, answered after
// COMMIT. A call that fails by its own fault is undone alone; when the disk or the engine refuses, the whole
// batch fails and the connection is reopened before anything else is written: after a failed fsync the kernel may
// have dropped the pages, and trying again would acknowledge what is not there.
import type { Database, Statement } from "better-sqlite3";
import type { Clock } from "../../../clock.ts";
import {
  createWalState,
  cutLogFile,
  restartAgainAfterBytes,
  restartAtBytes,
  restartSoonAfterBytes,
  restartWaitMs,
} from "./wal.ts";
import { causeOf, isEngineFault } from "./engine-fault.ts";
import type { WalState } from "./wal.ts";
import { busyTimeoutMs, openWriting, readBack } from "./open.ts";
import type { PragmasReadBack } from "./open.ts";
import type { Commit } from "../../interface/engine.ts";

/** What a batch gathers in memory while its calls run: what a call added is taken back with it. */
export interface BatchState<Mark> {
  begin(): void;
  mark(): Mark;
  undo(to: Mark): void;
}

/** What runs on the writing connection: the commands, prepared, with what they gather in memory. */
export interface PreparedWriter<Mark> {
  commands: Record<string, (arg: never, blobs: readonly Buffer[]) => unknown>;
  state: BatchState<Mark>;
  /** Writes what the transaction has gathered, just before its COMMIT. */
  flush(): void;
  /** What the transaction that was just committed brought. */
  brought(): Commit;
}

/** `bytes` of the batch are one buffer; a call's blobs follow one another from `at`, each as long as `lengths` says. */
export interface Call {
  command: string;
  arg: unknown;
  at: number;
  lengths: readonly number[];
}

export interface Batch {
  calls: Call[];
  bytes: Uint8Array;
  /** How long its calls may be written, milliseconds; what is left then is not begun. */
  withinMs: number;
}

export type BatchResult =
  | {
      kind: "committed";
      /** Of the calls that were written, by place: the first ones, all where the time sufficed. */
      results: unknown[];
      /** The calls that were undone, by place. */
      failures: [index: number, message: string][];
      commit: Commit;
      wal: WalState;
      /** How long each call took, in milliseconds, by place. */
      tookMs: number[];
      /** How long COMMIT took, its sync above all. */
      commitMs: number;
    }
  | { kind: "refused"; why: "full" | "failed"; detail: string };

interface Session<Mark> {
  db: Database;
  writer: PreparedWriter<Mark>;
  begin: Statement;
  commit: Statement;
  rollback: Statement;
  savepoint: Statement;
  releaseSavepoint: Statement;
  undoSavepoint: Statement;
  wal(): WalState;
}

export interface BatchRunner {
  /** What the writing connection answers about itself; opens it where it is not. */
  pragmas(): PragmasReadBack;
  run(batch: Batch): BatchResult;
  /**
   * Between batches, behind the answers: restarts a log that has grown past what copying beside the writer keeps small, and
   * cuts a piece off a file that it has outgrown.
   */
  tidy(): void;
  /** Copies the whole log into the database, empties it, and closes. */
  close(): void;
}

/** A reader that hangs, as a backup on a disk that does not answer, leaves the log as it is: the next start reads it. */
const closeBusyMs = 200;

/** `prepare` is called on each connection that is opened; while `held` the log is not restarted (held-log.ts). */
export function createBatchRunner<Mark>(
  path: string,
  clock: Clock,
  prepare: (db: Database) => PreparedWriter<Mark>,
  held: () => boolean = () => false,
): BatchRunner {
  let session: Session<Mark> | null = null;
  let restartPast = restartAtBytes;
  let mayCut = true;
  /** After the last batch, or as the connection found it. */
  let wal: WalState = { bytes: 0, copiedBytes: 0 };
  const opened = (): Session<Mark> => {
    if (session) return session;
    session = openSession(path, prepare);
    wal = session.wal();
    return session;
  };

  const giveUp = (error: unknown): void => {
    if (!session) return;
    const { db } = session;
    try {
      if (db.inTransaction) db.exec("ROLLBACK");
      if (isEngineFault(error) && error.code === "SQLITE_FULL") {
        db.pragma("wal_checkpoint(TRUNCATE)"); // an emptied log is some of the room that is missing
        wal = session.wal();
        return; // nothing is in doubt: what did not fit was not written
      }
    } catch {
      // the connection is closed below, whatever it says
    }
    session = null;
    try {
      db.close();
    } catch {
      // nothing is written through it again
    }
  };

  const cut = (wal: WalState): void => {
    try {
      mayCut = cutLogFile(path, wal);
    } catch {
      mayCut = false; // the file stays long until the log is restarted once more
    }
  };

  const refuse = (error: unknown): BatchResult => {
    const why = causeOf(error, path);
    giveUp(error);
    return { kind: "refused", why, detail: error instanceof Error ? error.message : String(error) };
  };

  return {
    pragmas: () => readBack(opened().db),
    run(batch) {
      try {
        const current = opened();
        const outcome = runAll(current, batch, clock);
        wal = current.wal();
        return { kind: "committed", ...outcome, commit: current.writer.brought(), wal };
      } catch (error) {
        return refuse(error);
      }
    },
    tidy() {
      if (!session) return;
      try {
        if (mayCut) cut(wal);
        const isHeld = held();
        // Not only where it is restarted here: what is copied whole by a backup's end, a commit restarts by itself.
        mayCut ||= isHeld || wal.bytes >= restartAtBytes;
        if (isHeld || wal.bytes < restartPast) return;
        const before = session.wal();
        session.db.pragma(`busy_timeout = ${restartWaitMs}`);
        session.db.pragma("wal_checkpoint(RESTART)");
        session.db.pragma(`busy_timeout = ${busyTimeoutMs}`);
        const { bytes, copiedBytes } = session.wal();
        const wait = copiedBytes > before.copiedBytes ? restartAgainAfterBytes : restartSoonAfterBytes;
        restartPast = copiedBytes < bytes ? bytes + wait : restartAtBytes;
      } catch (error) {
        giveUp(error);
      }
    },
    close() {
      if (!session) return;
      session.db.pragma(`busy_timeout = ${closeBusyMs}`);
      session.db.pragma("wal_checkpoint(TRUNCATE)");
      session.db.close();
      session = null;
    },
  };
}

function openSession<Mark>(path: string, prepare: (db: Database) => PreparedWriter<Mark>): Session<Mark> {
  const db = openWriting(path);
  return {
    db,
    writer: prepare(db),
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    savepoint: db.prepare("SAVEPOINT call"),
    releaseSavepoint: db.prepare("RELEASE call"),
    undoSavepoint: db.prepare("ROLLBACK TO call"),
    wal: createWalState(db),
  };
}

/** All calls without savepoints first, which cost a tenth; where one fails by its own fault, all again with one each. */
function runAll<Mark>(session: Session<Mark>, batch: Batch, clock: Clock): Outcome {
  const outcome = attempt(session, batch, clock, false) ?? attempt(session, batch, clock, true);
  if (!outcome) throw new Error("a batch of isolated calls took itself back");
  return outcome;
}

interface Outcome {
  results: unknown[];
  failures: [number, string][];
  tookMs: number[];
  commitMs: number;
}

/** Null: a call failed by its own fault and, not being isolated, took all back. Throws what the engine throws. */
function attempt<Mark>(
  session: Session<Mark>,
  batch: Batch,
  clock: Clock,
  isolated: boolean,
): Outcome | null {
  const { db, writer } = session;
  const { commands, state } = writer;
  const { calls, bytes } = batch;
  const outcome: Outcome = { results: [], failures: [], tookMs: [], commitMs: 0 };
  state.begin();
  const start = state.mark();
  session.begin.run();
  let began = clock.monotonic();
  const endsAt = began + batch.withinMs;
  try {
    for (const [index, call] of calls.entries()) {
      if (index > 0 && began >= endsAt) break;
      const before = state.mark();
      if (isolated) session.savepoint.run();
      try {
        outcome.results.push(commandOf(commands, call.command)(call.arg as never, blobsOf(call, bytes)));
      } catch (error) {
        if (isEngineFault(error) || !db.inTransaction) throw error;
        state.undo(isolated ? before : start);
        if (!isolated) {
          session.rollback.run();
          return null;
        }
        session.undoSavepoint.run();
        outcome.results.push(null);
        outcome.failures.push([
          index,
          error instanceof Error ? `${error.name}: ${error.message}` : String(error),
        ]);
      }
      if (isolated) session.releaseSavepoint.run();
      const ended = clock.monotonic();
      outcome.tookMs.push(ended - began);
      began = ended;
    }
    writer.flush();
    const before = clock.monotonic();
    session.commit.run();
    outcome.commitMs = clock.monotonic() - before;
    return outcome;
  } catch (error) {
    state.undo(start);
    throw error;
  }
}

function commandOf<C>(commands: Record<string, C>, name: string): C {
  const command = commands[name];
  if (!command) throw new Error(`${name}: no such command`);
  return command;
}

function blobsOf(call: Call, bytes: Uint8Array): Buffer[] {
  let at = bytes.byteOffset + call.at;
  return call.lengths.map((length) => {
    const blob = Buffer.from(bytes.buffer, at, length);
    at += length;
    return blob;
  });
}
