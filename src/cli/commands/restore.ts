// `svc restore DIR`: puts a backup in the place of the data directory of a stopped service, and says what to do next.
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { RestoredBackup } from "../../backup/restore.ts";
import { placesOf } from "../../config/places.ts";
import { defaultAccount } from "../../model/account.ts";
import { agreeByName } from "../ask.ts";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { offlineFault } from "../offline.ts";

interface RestoreFlags {
  confirm?: string;
  config?: string;
  dataDir?: string;
}

export function register(restore: Command, cli: Cli): void {
  restore
    .argument("<dir>", "the directory of the backup")
    .option("--confirm <word>", "restore: skip the prompt")
    .option("--config <file>", "the svc.yaml to read (SVC_CONFIG)")
    .option("--data-dir <dir>", "the data directory (SVC_DATA_DIR)")
    .action((dir: string, flags: RestoreFlags) => run(cli, resolve(cli.io.cwd, dir), flags));
}

async function run(cli: Cli, from: string, flags: RestoreFlags): Promise<void> {
  const only = flags.config ?? cli.io.env["SVC_CONFIG"];
  const file = only === undefined ? null : resolve(cli.io.cwd, only);
  const dataDir = await dataDirOf(cli, flags, file);
  if (!existsSync(from)) throw new CliFault(3, `there is no ${from}`);
  const replaced = existsSync(join(dataDir, "svc.db")) ? " What is there is moved aside, and kept." : "";
  await agreeByName(cli, `Restore ${from} to ${dataDir}?${replaced}`, "restore", flags.confirm);
  const daemon = await cli.loadDaemon();
  try {
    const isConfigFile = configFileTest(cli, file);
    show(cli, dataDir, await daemon.restore({ from, dataDir, isConfigFile }));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw offlineFault(cli, error, "Stop the service first: systemctl stop svc-mail");
  }
}

/** Of a command for which nothing but the data directory matters. `file`: the only svc.yaml to read. */
export async function dataDirOf(
  cli: Cli,
  { dataDir }: Pick<RestoreFlags, "dataDir">,
  file: string | null,
): Promise<string> {
  if (dataDir !== undefined) return resolve(cli.io.cwd, dataDir);
  const { faultText, loadConfig } = await import("../../config.ts");
  const result = loadConfig({
    ...cli.io,
    env: { ...cli.io.env, SVC_CONFIG: undefined },
    flags: file === null || !existsSync(file) ? {} : { config: file },
    machineName: "new.example", // a new machine may have no full name yet, and needs none for this
  });
  if ("config" in result) return result.config.dataDir;
  throw new CliFault(78, "the configuration has faults:", [
    ...result.faults.map(faultText),
    "Correct them, or name the directory with --data-dir.",
  ]);
}

function configFileTest(cli: Cli, file: string | null): (path: string) => boolean {
  const { systemConfig, systemConfigDir, userConfig } = placesOf(cli.io);
  return (path) =>
    path === (file ?? systemConfig) ||
    path === userConfig ||
    (dirname(path) === systemConfigDir && path.endsWith(".yaml"));
}

function show(cli: Cli, dataDir: string, restored: RestoredBackup): void {
  const { manifest, held, aside, config, filesMissing } = restored;
  const recipients = held.reduce((sum, one) => sum + one.recipients, 0);
  if (cli.out.json)
    return cli.out.body(
      JSON.stringify({ data_dir: dataDir, created_at: manifest.created_at, aside, held, config }),
    );
  cli.out.line(`${dataDir} is as it was at ${manifest.created_at} on ${manifest.hostname}`);
  if (aside !== null) cli.out.note(`What was there is in ${aside}; remove it when you need it no more.`);
  if (filesMissing > 0) cli.out.note(`The content of ${filesMissing} messages is missing from the backup.`);
  for (const { origin, path, state } of config) {
    if (state === "written") cli.out.note(`${origin} is written.`);
    if (state === "different")
      cli.out.note(`${origin} is not that of the backup; compare it: diff ${path} ${origin}`);
  }
  if (recipients === 0) return cli.out.next("No mail was unsent. Start the service.");
  cli.out.note(
    `${recipients} recipients were unsent then, and are held: some may have got their mail since. Start the service, then:`,
  );
  for (const { account } of held) {
    const as = account === defaultAccount ? "" : ` --account ${account}`;
    cli.out.note(`  ${cli.program} queue list --status held${as}`);
    cli.out.note(`  ${cli.program} queue release --status held${as}    or: queue delete --status held${as}`);
  }
}
