// The database's file as the system knows it, open beside SQLite's connections for as long as they are: what is copied from the
// log is synced through it, away from the writer. To close any descriptor of the file drops the locks that SQLite holds on it
// in this process (fcntl), so it is opened before the first connection and closed after the last.
import { closeSync, fdatasync, openSync } from "node:fs";
import { promisify } from "node:util";

export interface DatabaseFile {
  /** Its descriptor, which the process's threads share. */
  readonly descriptor: number;
  /** What was written to it by then is on disk. In a thread of Node's own pool. */
  sync(): Promise<void>;
  close(): void;
}

const syncFile = promisify(fdatasync);

export function openDatabaseFile(path: string): DatabaseFile {
  const descriptor = openSync(path, "r");
  return {
    descriptor,
    sync: () => syncFile(descriptor),
    close: () => closeSync(descriptor),
  };
}
