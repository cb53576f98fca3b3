// Runs the steps of a schema: forward only, one transaction a step, counted in PRAGMA user_version. Before a step on a
// database with content, a copy is put beside it. A database that a newer program has written is refused, never
// guessed at.
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, rmSync } from "node:fs";
import type { Database } from "better-sqlite3";

/** A database of a later version of the program. */
export class SchemaTooNew extends Error {}

/** Versions of the schema, before and after. Throws SchemaTooNew. */
export function planMigration(
  db: Database,
  path: string,
  steps: readonly string[],
): { from: number; to: number } {
  const at = Number(db.pragma("user_version", { simple: true }));
  if (at > steps.length) {
    throw new SchemaTooNew(
      `${path} has schema version ${at}; this program knows versions up to ${steps.length}. Use the newer program, or restore a backup that an older one made.`,
    );
  }
  return { from: at, to: steps.length };
}

/** Step n brings the schema from version n to n + 1. Answers what was done, and the copy that was made before. Throws SchemaTooNew. */
export function runMigrations(
  db: Database,
  path: string,
  steps: readonly string[],
): { from: number; to: number; copy: string | null } {
  const { from, to } = planMigration(db, path, steps);
  const copy = from > 0 && from < to ? `${path}.v${from}.bak` : null;
  if (copy !== null) copyBeside(db, copy);
  for (let version = from; version < steps.length; version++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(steps[version] ?? "");
      db.pragma(`user_version = ${version + 1}`);
      db.exec("COMMIT");
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
  return { from, to, copy };
}

/** A synced copy, readable by its owner only. One of an earlier try, perhaps unfinished, is replaced. */
function copyBeside(db: Database, target: string): void {
  if (existsSync(target)) rmSync(target);
  closeSync(openSync(target, "wx", 0o600)); // VACUUM INTO takes an empty file and keeps its mode
  db.prepare("VACUUM INTO ?").run(target);
  chmodSync(target, 0o600);
  const file = openSync(target, "r+");
  fsyncSync(file);
  closeSync(file);
}
