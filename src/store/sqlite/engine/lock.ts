// One process a data directory. The lock is an exclusive transaction on a small database of its own, held
// for the life of the process: the kernel lets it go when the process ends, however it ends, so no stale lock
// survives a kill -9. svc.pid beside it only names the holder for the message and proves nothing.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { makeDirectory, makeFile } from "./open.ts";
import { StoreLocked } from "../../store.ts";

export interface DirectoryLock {
  release(): void;
}

/** Takes the lock at once or throws StoreLocked. Makes the directory (0700) where there is none. */
export function lockDirectory(dataDir: string): DirectoryLock {
  makeDirectory(dataDir);
  const path = join(dataDir, "svc.lock");
  const pidFile = join(dataDir, "svc.pid");
  makeFile(path);
  const db = new Sqlite(path, { timeout: 0 });
  try {
    db.pragma("journal_mode = MEMORY");
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if (!(error instanceof Sqlite.SqliteError) || !error.code.startsWith("SQLITE_BUSY")) throw error;
    const pid = readPid(pidFile);
    const holder = pid === null ? "another process" : `process ${pid}`;
    throw new StoreLocked(
      `${dataDir} is in use by ${holder}: stop it first, or give this one another data directory`,
      { cause: error },
    );
  }
  try {
    rmSync(pidFile, { force: true }); // as root, nothing is written where a link of the service's user leads
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // a full disk must not keep the program from starting: the name of the holder is a courtesy
  }
  return { release: () => void db.close() };
}

function readPid(pidFile: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(pidFile, "utf8"), 10);
    return Number.isInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
