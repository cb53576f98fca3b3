// `svc logs`: the last lines of the running service's log, which it keeps in memory, and those to come. Older ones, and
// those of a service that does not run, are where its stderr goes: journald, under systemd.
import type { Command } from "commander";
import { logLevels } from "../../model/log-level.ts";
import { orList } from "../../word-list.ts";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { coloured, type Row } from "../output.ts";
import { cell, neutralised } from "../text.ts";

const mostLines = 2000;

interface Flags {
  follow?: boolean;
  component?: string;
  level?: string;
  lines?: string;
}

export function register(logs: Command, cli: Cli): void {
  logs
    .option("-f, --follow", "go on with each line that is logged, until Ctrl-C")
    .option("--component <name>", "lines of this part alone: queue, delivery, webhooks, http, relay, …")
    .option("--level <level>", `this level and graver ones: ${orList(logLevels)}`)
    .option("--lines <n>", "how many of the last lines (100)")
    .addHelpText(
      "after",
      `
The service keeps its last 2,000 lines, 512 KB at most.
Older ones, under systemd: journalctl -u svc-mail

Examples:
  svc logs -f --component delivery
  svc logs --level warn --lines 20
  svc --json logs -f | jq 'select(.err)'`,
    )
    .action((flags: Flags) => show(cli, flags));
}

async function show(cli: Cli, { follow, component, level, lines }: Flags): Promise<void> {
  if (lines !== undefined && !(/^\d{1,4}$/.test(lines) && Number(lines) <= mostLines))
    throw usage(`--lines: found "${lines}", expected a number up to ${mostLines}`);
  if (level !== undefined && !logLevels.some((known) => known === level))
    throw usage(`--level: found "${level}", expected ${orList(logLevels)}`);
  const query = { component, level, lines, follow: follow ? "true" : undefined };
  const paint = painter(cli);
  let any = false;
  for await (const line of cli.client.lines("/v1/logs", query)) {
    any = true;
    if (cli.out.json) cli.out.body(line);
    else cli.io.stdout.write(`${paint(line)}\n`);
    await cli.out.drained();
  }
  if (follow) throw new CliFault(6, "the daemon ended the stream", [`Go on: ${cli.program} logs -f`]);
  if (!any && !cli.out.json)
    cli.out.note(
      "No lines since the start at log.level, which is warn with svc serve --dev: SVC_LOG_LEVEL=info shows more. Under systemd, those before the start: journalctl -u svc-mail",
    );
}

/** In the order in which a person reads it. */
const first = ["time", "level", "component", "msg"];
const shades: Record<string, number> = { warn: 33, error: 31 };

function painter({ io }: Cli): (line: string) => string {
  const colour = coloured(io.stdout, io.env);
  return (line) => {
    const row = parsed(line);
    if (row === null) return neutralised(line);
    const level = cell(row["level"]);
    const shade = shades[level];
    const mark = level.toUpperCase().padEnd(5);
    const others = Object.entries(row)
      .filter(([name]) => !first.includes(name))
      .map(([name, value]) => `${neutralised(name)}=${valueText(value)}`);
    return [
      cell(row["time"]),
      colour && shade !== undefined ? `\x1b[${shade}m${mark}\x1b[0m` : mark,
      ...(row["component"] === undefined ? [] : [`${cell(row["component"])}:`]),
      cell(row["msg"]),
      ...others,
    ].join(" ");
  };
}

/** Text without spaces stands as it is; all else as JSON. */
function valueText(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return neutralised(value);
  return neutralised(JSON.stringify(value) ?? "");
}

function parsed(line: string): Row | null {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === "object" ? (value as Row) : null;
  } catch {
    return null;
  }
}
