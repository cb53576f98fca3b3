// A copy of the database, as a file that nobody else has open: opened, and checked. How one is made: snapshot.ts. Knows no
// noun.
import Sqlite from "better-sqlite3";
import type { Database } from "better-sqlite3";

/** A copy as a database of its own: one file, without a log beside it. */
export function openCopy(path: string): Database {
  const db = new Sqlite(path, { fileMustExist: true });
  try {
    db.pragma("journal_mode = DELETE");
    db.pragma("foreign_keys = OFF");
    db.pragma("temp_store = MEMORY");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Checks every table with its indexes; `between` is called after each. Throws where one is damaged. */
export function checkIntegrity(db: Database, path: string, between: () => void = () => undefined): void {
  for (const fault of faultsOf(db)) {
    if (fault !== null) throw new Error(`${path} is damaged: ${fault}`);
    between();
  }
}

/** What is wrong with each table and its indexes; null after one that is well. */
export function* faultsOf(db: Database): Generator<string | null> {
  const tables = db
    .prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all();
  for (const { name } of tables) {
    const found = db.pragma(`integrity_check('${name.replaceAll("'", "''")}')`) as {
      integrity_check: string;
    }[];
    for (const { integrity_check: text } of found) yield text === "ok" ? null : text;
  }
}
