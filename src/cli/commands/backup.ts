// `svc backup`: asks the daemon for a backup and waits for it; with --offline it makes one of a stopped service itself.
import { lstatSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import type { Config } from "../../config.ts";
import type { BackupContent } from "../../model/backup.ts";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import type { Row } from "../output.ts";
import { sizeText } from "../text.ts";

interface BackupFlags {
  to?: string;
  withoutContent?: boolean;
  offline?: boolean;
  config?: string;
  dataDir?: string;
}

const pollMs = 300;

export function register(backup: Command, cli: Cli): void {
  backup
    .option("--to <dir>", "make it in this folder (backup.to)")
    .option("--without-content", "leave out the content of sent mail; unsent mail keeps its own")
    .option("--offline", "of a stopped service, without the daemon")
    .option("--config <file>", "with --offline: the svc.yaml to read (SVC_CONFIG)")
    .option("--data-dir <dir>", "with --offline: the data directory (SVC_DATA_DIR)")
    .action(async (flags: BackupFlags) => {
      const content = flags.withoutContent ? "unsent" : "all";
      const to = flags.to === undefined ? undefined : resolve(cli.io.cwd, flags.to);
      show(cli, flags.offline ? await offline(cli, flags, to, content) : await online(cli, to, content));
    });
}

async function online(cli: Cli, to: string | undefined, content: BackupContent): Promise<Row> {
  const progress = createProgress(cli);
  const begun = await begin(cli, { ...(to === undefined ? {} : { to }), content });
  const mine = startOf(begun);
  for (let state = begun; ;) {
    const running = state["running"] as Row | null;
    if (running === null || startOf(state) !== mine) return result(cli, state, progress);
    progress.show(Number(running["progress"]));
    await new Promise<void>((done) => void cli.io.clock.after(pollMs, done));
    state = (await cli.client.call("GET", "/v1/backups")).json;
  }
}

async function begin(cli: Cli, body: Row): Promise<Row> {
  try {
    return (await cli.client.call("POST", "/v1/backups", { body })).json;
  } catch (error) {
    if (!(error instanceof CliFault) || error.exit !== 6) throw error;
    throw new CliFault(6, error.message, [
      `If the service is stopped: ${cli.program} backup --offline`,
      ...error.advice,
    ]);
  }
}

const startOf = (state: Row): unknown => (state["running"] as Row | null)?.["started_at"] ?? null;

function result(cli: Cli, state: Row, progress: Progress): Row {
  progress.end();
  const last = state["last"] as Row | null;
  if (last === null) throw new CliFault(1, "the daemon was restarted before the backup was complete");
  const made = last["backup"] as Row | null;
  if (made) return made;
  throw new CliFault(1, `the backup failed: ${String(last["error"])}`, [
    `Nothing of it was kept. See also: ${cli.program} status`,
  ]);
}

async function offline(
  cli: Cli,
  flags: BackupFlags,
  to: string | undefined,
  content: BackupContent,
): Promise<Row> {
  const config = await configOf(cli, flags);
  const { createLog } = await import("../../log.ts");
  const log = createLog({ level: "warn" });
  const daemon = await cli.loadDaemon();
  const progress = createProgress(cli);
  try {
    const made = await daemon.backupOffline({
      config,
      log,
      to: to ?? config.backup.to,
      content,
      onProgress: progress.show,
    });
    const { files: _files, format: _format, ...shown } = made;
    return shown;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw offlineFault(cli, error, `Without --offline the running service makes it: ${cli.program} backup`);
  } finally {
    progress.end();
    log.flush();
  }
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

/** Of a command that needs the data directory for itself: the configuration that names it. */
export async function configOf(
  cli: Cli,
  { config: file, dataDir }: Pick<BackupFlags, "config" | "dataDir">,
): Promise<Config> {
  const { faultText, loadConfig } = await import("../../config.ts");
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

interface Progress {
  show(share: number): void;
  end(): void;
}

/** On a terminal, one line that is written again and again. */
function createProgress({ io, out }: Cli): Progress {
  const shown = io.stderr.isTTY && !out.json;
  let last = -1;
  return {
    show(share) {
      const percent = Math.floor(share * 100);
      if (!shown || percent === last) return;
      last = percent;
      io.stderr.write(`\r${percent < 100 ? `backing up: ${percent} %` : "verifying the copy"}\x1b[K`);
    },
    end() {
      if (last >= 0) io.stderr.write("\r\x1b[K");
      last = -1;
    },
  };
}

function show(cli: Cli, made: Row): void {
  if (cli.out.json) return cli.out.body(JSON.stringify(made));
  const counts = made["counts"] as Row;
  cli.out.line(String(made["path"]));
  cli.out.note(
    `${Number(counts["messages"])} messages, ${Number(counts["unsent_recipients"])} unsent recipients, ` +
      `${Number(counts["files"])} files of content (${sizeText(Number(counts["file_bytes"]))}); verified`,
  );
  const missing = Number(counts["files_missing"]);
  if (missing > 0)
    cli.out.note(`${missing} files of content were not in the spool, and are not in the backup.`);
  cli.out.next(
    `It has private keys: keep it as safe as the server. To restore it: ${cli.program} restore DIR`,
  );
}
