// Runs the steps of a schema: forward only, one transaction a step, counted in PRAGMA user_version. Before a step on a
// database with content, a copy is put beside it. A database that a newer program has written is refused, never
// guessed at, and so is one of a version from before the first that was released.
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, rmSync } from "node:fs";
import type { Database } from "better-sqlite3";

/** A database of a version that this program does not know: a later one, or one that was never released. */
export class SchemaRefused extends Error {}

/** By the version that each step leads to. Never edited once released; only added to. */
export type Steps = Readonly<Record<number, string>>;

/** The first step makes version `first` in an empty database, each other one the next version. */
export interface Migrations {
  first: number;
  newest: number;
  steps: Steps;
}

/** Versions of the schema, before and after. */
export interface SchemaChange {
  from: number;
  to: number;
}

/** Steps to the same version are one, in the order of the parts. A version that no part leads to is a fault of the program. */
export function joinSteps(parts: readonly Steps[]): Migrations {
  const steps: Record<number, string> = {};
  for (const [version, text] of parts.flatMap((part) => Object.entries(part)))
    steps[Number(version)] = (steps[Number(version)] ?? "") + text;
  const versions = Object.keys(steps).map(Number);
  const [first, newest] = [Math.min(...versions), Math.max(...versions)];
  if (newest - first + 1 !== versions.length) throw new Error("the versions of the schema have a gap");
  return { first, newest, steps };
}

/** Throws SchemaRefused. */
export function planMigration(db: Database, path: string, { first, newest }: Migrations): SchemaChange {
  const at = Number(db.pragma("user_version", { simple: true }));
  if (at > newest) {
    throw new SchemaRefused(
      `${path} has schema version ${at}; this program knows versions up to ${newest}. Use the newer program, or restore a backup that an older one made.`,
    );
  }
  if (at > 0 && at < first) {
    throw new SchemaRefused(
      `${path} has schema version ${at}, which was never released; this program knows versions from ${first}. Send what is queued with the program that wrote it, then start with another data directory.`,
    );
  }
  return { from: at, to: newest };
}

/** Answers what was done, and the copy that was made before. Throws SchemaRefused. */
export function runMigrations(
  db: Database,
  path: string,
  migrations: Migrations,
): SchemaChange & { copy: string | null } {
  const { from, to } = planMigration(db, path, migrations);
  const copy = from > 0 && from < to ? `${path}.v${from}.bak` : null;
  if (copy !== null) copyBeside(db, copy);
  for (let version = from === 0 ? migrations.first : from + 1; version <= to; version++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(migrations.steps[version] ?? "");
      db.pragma(`user_version = ${version}`);
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
