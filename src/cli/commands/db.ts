// `svc db check`: the database table by table, rows that name others, and the files of content, of the running service; with
// --offline of one that is stopped. Exit 7 where something is damaged.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { addOfflineFlags, isOffline, orOffline, withStopped, type OfflineFlags } from "../offline.ts";
import type { Row } from "../output.ts";
import { sizeText } from "../text.ts";

const pollMs = 300;
const shownFaults = 10;

export function register(db: Command, cli: Cli): void {
  const check = db
    .command("check")
    .description("check the database and the files of content; exit 7 if something is damaged");
  addOfflineFlags(check).action(async (flags: OfflineFlags) =>
    show(cli, isOffline(flags) ? await offline(cli, flags) : await online(cli)),
  );
}

async function online(cli: Cli): Promise<Row> {
  let state = (await orOffline(cli, "db check", cli.client.call("POST", "/v1/database/check"))).json;
  const mine = startOf(state);
  while (startOf(state) === mine && state["running"] !== null) {
    await new Promise<void>((done) => void cli.io.clock.after(pollMs, done));
    state = (await cli.client.call("GET", "/v1/database/check")).json;
  }
  const last = state["last"] as Row | null;
  if (last === null) throw new CliFault(1, "the daemon was restarted before the check was complete");
  if (last["found"] !== null) return last["found"] as Row;
  throw new CliFault(1, `the check was not completed: ${String(last["error"])}`, [
    "It needs as much free space in the data directory as the database has.",
  ]);
}

const startOf = (state: Row): unknown => (state["running"] as Row | null)?.["started_at"] ?? null;

async function offline(cli: Cli, flags: OfflineFlags): Promise<Row> {
  const whereRunning = `Without --offline the running service does it: ${cli.program} db check`;
  return withStopped(cli, flags, { level: "warn", whereRunning }, async (daemon, stopped) => {
    const { files, ...found } = await daemon.checkOffline(stopped);
    return {
      sound: found.sound,
      faults: found.faults,
      dangling_rows: found.danglingRows,
      files: {
        named: files.named,
        missing: files.missing,
        cut_short: files.cutShort,
        unnamed: files.unnamed,
      },
      database_bytes: found.databaseBytes,
      log_bytes: found.logBytes,
    };
  });
}

function show(cli: Cli, found: Row): void {
  const files = found["files"] as Record<string, number>;
  const faults = found["faults"] as string[];
  if (cli.out.json) cli.out.body(JSON.stringify(found));
  else {
    cli.out.fields([
      [
        "database",
        `${faults.length === 0 ? "intact" : "damaged"}, ${sizeText(Number(found["database_bytes"]))}`,
      ],
      ["write-ahead log", sizeText(Number(found["log_bytes"]))],
      ["dangling rows", found["dangling_rows"]],
      [
        "files of content",
        `${files["named"]} named, ${files["missing"]} missing, ${files["cut_short"]} cut short`,
      ],
      ["files without a message", files["unnamed"]],
    ]);
    for (const fault of faults.slice(0, shownFaults)) cli.out.line(fault);
  }
  if (found["sound"] === true) return;
  throw new CliFault(
    7,
    "the store is damaged",
    mendOf(cli, faults.length > 0, Number(found["dangling_rows"]) > 0),
  );
}

function mendOf(cli: Cli, damaged: boolean, dangling: boolean): string[] {
  if (damaged || dangling)
    return [
      "Look for faults of the disk (dmesg, smartctl), and keep the damaged data directory for what can be saved.",
      `Then restore the newest backup that is intact: ${cli.program} restore DIR`,
    ];
  return [
    "Content of messages is lost: those that are unsent bounce. Copy the missing files from a backup's spool/ into that of the data directory.",
  ];
}
