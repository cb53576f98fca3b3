// `svc migrate`: brings the database of a stopped service to the schema of this program, as the next start would, and says
// where the copy of the former one is.
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { offlineFault } from "../offline.ts";
import { dataDirOf } from "./restore.ts";

interface MigrateFlags {
  dryRun?: boolean;
  config?: string;
  dataDir?: string;
}

export function register(migrate: Command, cli: Cli): void {
  migrate
    .option("--dry-run", "say what would be done, and do nothing")
    .option("--config <file>", "the svc.yaml to read (SVC_CONFIG)")
    .option("--data-dir <dir>", "the data directory (SVC_DATA_DIR)")
    .action((flags: MigrateFlags) => run(cli, flags));
}

/** Throws CliFault where this user may not look. */
function isThere(cli: Cli, file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw offlineFault(cli, error, "");
  }
}

async function run(cli: Cli, flags: MigrateFlags): Promise<void> {
  const only = flags.config ?? cli.io.env["SVC_CONFIG"];
  const dataDir = await dataDirOf(cli, flags, only === undefined ? null : resolve(cli.io.cwd, only));
  if (!isThere(cli, join(dataDir, "svc.db")))
    throw new CliFault(3, `${dataDir} has no database`, ["Name the data directory with --data-dir."]);
  const dryRun = flags.dryRun === true;
  const daemon = await cli.loadDaemon();
  try {
    const { from, to, copy } = await daemon.migrate({ dataDir, dryRun });
    if (cli.out.json)
      return cli.out.body(JSON.stringify({ data_dir: dataDir, from, to, copy, dry_run: dryRun }));
    if (from === to) return cli.out.line(`${dataDir} has schema version ${to} already`);
    if (dryRun) {
      cli.out.line(`${dataDir} would be brought from schema version ${from} to ${to}`);
      return cli.out.next(`To do it: ${cli.program} migrate`);
    }
    cli.out.line(`${dataDir} is brought from schema version ${from} to ${to}`);
    if (copy !== null) cli.out.note(`The database as it was: ${copy}; remove it when you need it no more.`);
    cli.out.next("Start the service.");
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw offlineFault(cli, error, "Stop the service first: systemctl stop svc-mail");
  }
}
