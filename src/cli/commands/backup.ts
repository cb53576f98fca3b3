// `svc backup`: asks the daemon for a backup and waits for it; with --offline it makes one of a stopped service itself.
import { resolve } from "node:path";
import type { Command } from "commander";
import type { BackupContent } from "../../model/backup.ts";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { addOfflineFlags, isOffline, orOffline, withStopped, type OfflineFlags } from "../offline.ts";
import type { Row } from "../output.ts";
import { sizeText } from "../text.ts";

interface BackupFlags extends OfflineFlags {
  to?: string;
  withoutContent?: boolean;
}

const pollMs = 300;

export function register(backup: Command, cli: Cli): void {
  backup
    .option("--to <dir>", "make it in this folder (backup.to)")
    .option("--without-content", "leave out the content of sent mail; unsent mail keeps its own");
  addOfflineFlags(backup).action(async (flags: BackupFlags) => {
    const content = flags.withoutContent ? "unsent" : "all";
    const to = flags.to === undefined ? undefined : resolve(cli.io.cwd, flags.to);
    show(cli, isOffline(flags) ? await offline(cli, flags, to, content) : await online(cli, to, content));
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
  return (await orOffline(cli, "backup", cli.client.call("POST", "/v1/backups", { body }))).json;
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
  const whereRunning = `Without --offline the running service makes it: ${cli.program} backup`;
  return withStopped(cli, flags, { level: "warn", whereRunning }, async (daemon, { config, log }) => {
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
    } finally {
      progress.end();
    }
  });
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
