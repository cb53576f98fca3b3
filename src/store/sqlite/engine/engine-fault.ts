// What an error of the engine means: that the call was wrong, or that the disk, the file or the engine is; and whether for want
// of room.
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import Sqlite from "better-sqlite3";

/** Free space under which a failed write is put down to want of room. */
const scarceBytes = 1024 * 1024;

/** Codes that say nothing about the call and everything about the disk, the file or the engine. */
const engineFault =
  /^SQLITE_(FULL|IOERR|NOMEM|CORRUPT|NOTADB|READONLY|CANTOPEN|BUSY|LOCKED|PROTOCOL|PERM|AUTH|NOLFS)/;

export function isEngineFault(error: unknown): error is InstanceType<typeof Sqlite.SqliteError> {
  return error instanceof Sqlite.SqliteError && engineFault.test(error.code);
}

/** A full disk shows as FULL, and where a sync or the shared memory met it as an I/O error. */
export function causeOf(error: unknown, path: string): "full" | "failed" {
  if (!isEngineFault(error)) return "failed";
  if (error.code === "SQLITE_FULL") return "full";
  if (!error.code.startsWith("SQLITE_IOERR")) return "failed";
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < scarceBytes ? "full" : "failed";
  } catch {
    return "failed";
  }
}
