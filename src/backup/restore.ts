// A backup put back in the place of a data directory, of a stopped service. First everything is verified, then the store
// does what restoring means to it, and a configuration file is written where the machine has none.
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Restored, RestoreRequest } from "../model/backup.ts";
import { stampOf } from "./directory.ts";
import { readManifest, verifyFiles, type BackupFile, type Manifest } from "./manifest.ts";

export interface RestoredBackup extends Restored {
  manifest: Manifest;
  /** Files of the configuration, as the machine has them now. */
  config: { origin: string; path: string; state: "same" | "different" | "written" }[];
}

export interface RestorePlan {
  from: string;
  dataDir: string;
  now: number;
  restoreStore(request: RestoreRequest): Restored;
  /** Whether the program reads its configuration there. */
  isConfigFile(path: string): boolean;
  /** True of a file that sets no option. */
  setsNothing(text: string): boolean;
}

/** Throws BackupUnusable, and what the store throws; nothing of the directory is changed then. */
export async function restoreBackup(plan: RestorePlan): Promise<RestoredBackup> {
  const { dataDir, now } = plan;
  const from = resolve(plan.from);
  const manifest = await readManifest(from);
  await verifyFiles(from, manifest);
  const restored = plan.restoreStore({
    from,
    dataDir,
    now,
    createdAt: Date.parse(manifest.created_at),
    counts: { files: manifest.counts.files, filesMissing: manifest.counts.files_missing },
    stamp: stampOf(now),
    others: ["tls"],
  });
  return { ...restored, manifest, config: restoreConfig(from, manifest, plan) };
}

/** What the machine's configuration says is never overwritten; nor is a file written that is none of its own. */
function restoreConfig(from: string, { files }: Manifest, plan: RestorePlan): RestoredBackup["config"] {
  return files.flatMap(({ path: name, origin, sha256 }) =>
    origin === undefined ? [] : [restoreFile({ path: join(from, name), sha256 }, origin, plan)],
  );
}

/** The store is restored by now: what is not permitted here is for the operator to do. */
function restoreFile(
  { path, sha256 }: Pick<BackupFile, "path" | "sha256">,
  origin: string,
  plan: RestorePlan,
): RestoredBackup["config"][number] {
  try {
    const kept = readFileSync(path);
    // The backup's owner may have put a link to another's file there since it was verified.
    if (createHash("sha256").update(kept).digest("hex") !== sha256)
      return { origin, path, state: "different" };
    const facts = statSync(origin, { throwIfNoEntry: false });
    if (facts && !facts.isFile()) return { origin, path, state: "different" };
    const here = facts ? readFileSync(origin, "utf8") : null;
    if (here === kept.toString("utf8")) return { origin, path, state: "same" };
    if (!plan.isConfigFile(origin) || (here !== null && !plan.setsNothing(here)))
      return { origin, path, state: "different" };
    mkdirSync(dirname(origin), { recursive: true, mode: 0o755 });
    writeFileSync(origin, kept);
    chmodSync(origin, 0o644);
    return { origin, path, state: "written" };
  } catch {
    return { origin, path, state: "different" };
  }
}
