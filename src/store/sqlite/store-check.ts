// The check of a whole store, in the backup's thread: of a copy of the database, so that no snapshot makes its log grow, and of
// the files of content against the rows that name them.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import type { StoreCheck } from "../../model/store-check.ts";
import { faultsOf, openCopy } from "./engine/copy.ts";

const mostFaults = 100;
/** A younger file may be of a message that is about to be accepted. */
const leastAgeMs = 3_600_000;
const filesAtOnce = 1000;

export function checkStore(
  { target, dataDir, now }: { target: string; dataDir: string; now: number },
  between: () => void,
): StoreCheck {
  const db = openCopy(target);
  try {
    const faults: string[] = [];
    for (const fault of faultsOf(db)) {
      if (fault !== null && faults.length < mostFaults) faults.push(fault);
      between();
    }
    return {
      faults,
      danglingRows: (db.pragma("foreign_key_check") as unknown[]).length,
      files: checkFiles(db, { spool: join(dataDir, "spool"), now }, between),
      databaseBytes: statSync(target).size,
      logBytes: statSync(join(dataDir, "svc.db-wal"), { throwIfNoEntry: false })?.size ?? 0,
    };
  } finally {
    db.close();
  }
}

function checkFiles(
  db: Database,
  { spool, now }: { spool: string; now: number },
  between: () => void,
): StoreCheck["files"] {
  const named = db.prepare<[], { name: string; sizeBytes: number }>(
    "SELECT content_name AS name, size_bytes AS sizeBytes FROM messages WHERE content_name IS NOT NULL",
  );
  const isNamed = db.prepare("SELECT 1 FROM messages WHERE content_name = ?");
  const files = { named: 0, missing: 0, cutShort: 0, unnamed: 0 };
  for (const { name, sizeBytes } of named.iterate()) {
    const facts = statSync(join(spool, name.slice(0, 2), name), { throwIfNoEntry: false });
    files.named += 1;
    if (!facts) files.missing += 1;
    else if (facts.size !== sizeBytes) files.cutShort += 1;
    if (files.named % filesAtOnce === 0) between();
  }
  for (const folder of foldersOf(spool)) {
    for (const name of foldersOf(join(spool, folder))) {
      const facts = statSync(join(spool, folder, name), { throwIfNoEntry: false });
      if (facts && now - facts.mtimeMs > leastAgeMs && !isNamed.get(name)) files.unnamed += 1;
    }
    between();
  }
  return files;
}

function foldersOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
