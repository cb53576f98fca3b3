// Commands that look at a stopped service by themselves where they are given --offline: their flags, the configuration that names
// the data directory, and what their faults mean.
import { lstatSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { Cli } from "./cli.ts";
import type { DaemonModule } from "./daemon-contract.ts";
import { CliFault, usage } from "./fault.ts";

export interface OfflineFlags {
  offline?: boolean;
  config?: string;
  dataDir?: string;
}

export function addOfflineFlags(command: Command): Command {
  return command
    .option("--offline", "of a stopped service, without the daemon")
    .option("--config <file>", "with --offline: the svc.yaml to read (SVC_CONFIG)")
    .option("--data-dir <dir>", "with --offline: the data directory (SVC_DATA_DIR)");
}

/** Throws for a flag that names another service than the one that would be asked. */
export function isOffline({ offline, config, dataDir }: OfflineFlags): boolean {
  const alone = config !== undefined ? "--config" : dataDir !== undefined ? "--data-dir" : null;
  if (offline !== true && alone !== null)
    throw usage(`${alone} needs --offline: without it the service behind the socket is asked (--socket)`);
  return offline === true;
}

/** What the daemon answers; where there is none, what does without it is named. */
export async function orOffline<T>(cli: Cli, command: string, answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    if (!(error instanceof CliFault) || error.exit !== 6) throw error;
    throw new CliFault(6, error.message, [
      `If the service is stopped: ${cli.program} ${command} --offline`,
      ...error.advice,
    ]);
  });
}

/** Does `act` with the stopped service. `whereRunning`: what to do where it runs after all. */
export async function withStopped<T>(
  cli: Cli,
  flags: OfflineFlags,
  { level, whereRunning }: { level: "warn" | "error"; whereRunning: string },
  act: (daemon: DaemonModule, of: { config: Config; log: Log }) => Promise<T>,
): Promise<T> {
  const config = await configOf(cli, flags);
  const { createLog } = await import("../log.ts");
  const log = createLog({ level });
  const daemon = await cli.loadDaemon();
  try {
    return await act(daemon, { config, log });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw offlineFault(cli, error, whereRunning);
  } finally {
    log.flush();
  }
}

/** The configuration that names the data directory. */
async function configOf(cli: Cli, { config: file, dataDir }: OfflineFlags): Promise<Config> {
  const { faultText, loadConfig } = await import("../config.ts");
  const result = loadConfig({
    ...cli.io,
    flags: {
      ...(file === undefined ? {} : { config: resolve(cli.io.cwd, file) }),
      ...(dataDir === undefined ? {} : { data_dir: resolve(cli.io.cwd, dataDir) }),
    },
  });
  if ("config" in result) return result.config;
  throw new CliFault(78, "the configuration has faults:", result.faults.map(faultText));
}

/** Of a command that needs the data directory for itself. */
export function offlineFault(cli: Cli, error: Error, whereRunning: string): CliFault {
  const code = "code" in error ? error.code : null;
  if (code === "STORE_LOCKED") return new CliFault(5, error.message, [whereRunning]);
  if (code !== "EACCES" && code !== "EPERM" && code !== "EROFS") return new CliFault(1, error.message);
  const path = "path" in error && typeof error.path === "string" ? error.path : null;
  return new CliFault(4, error.message, [permissionAdvice(cli, path)]);
}

/** Who may do what this user may not, by whose the nearest folder above is that there is. */
function permissionAdvice({ io, program }: Cli, path: string | null): string {
  const owned = path === null ? null : nearestOwner(path);
  const what = owned === null ? "it" : owned.path;
  if (io.uid === 0)
    return `As root this is done with the rights of the data directory's owner, who may not use ${what}. Give it to that user, or choose another directory.`;
  if (owned === null) return `Run it as root, or as the user of the service: sudo -u svc ${program} …`;
  if (owned.uid === io.uid)
    return `${what} is yours: see its mode, and whether its file system is read-only.`;
  const user = owned.uid === 0 ? "root" : `user ${owned.uid}`;
  const sudo = owned.uid === 0 ? "sudo" : `sudo -u '#${owned.uid}'`;
  return `${what} belongs to ${user}. Run it so: ${sudo} ${program} …, or use a directory of your own.`;
}

function nearestOwner(path: string): { path: string; uid: number } | null {
  try {
    const { uid } = lstatSync(path);
    return { path, uid };
  } catch {
    return path === dirname(path) ? null : nearestOwner(dirname(path));
  }
}
