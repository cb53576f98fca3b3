// `svc audit`: the audit log of all accounts: who did what, and from where. As a list, as it grows, and whole.
import type { Command } from "commander";
import { isoTime } from "../../clock.ts";
import type { Cli } from "../cli.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Column, type Row } from "../output.ts";
import { untilAnswered } from "../retry.ts";
import { cell } from "../text.ts";
import { moment } from "../times.ts";

interface Filters {
  action?: string;
  actor?: string;
  target?: string;
  since?: string;
  until?: string;
}

export function register(audit: Command, cli: Cli): void {
  addFilters(
    addListOptions(audit.command("list").description("list the audit log, newest first"), true),
  ).action((flags: Filters & ListFlags) =>
    printList(cli, flags, {
      path: "/v1/audit",
      query: queryOf(cli, flags),
      times: { since: "since", until: "until" },
      columns,
      empty: "No audit entries.",
    }),
  );
  addFilters(audit.command("tail").description("print entries as they are written, until Ctrl-C"))
    .option("--since <time>", "begin with the entries since then: RFC 3339, a day, 15m, 24h, yesterday (now)")
    .addHelpText(
      "after",
      "\nExamples:\n  svc audit tail\n  svc --json audit tail --action 'keys.*' --since 1h",
    )
    .action((flags: Filters) => tail(cli, flags));
  addFilters(audit.command("export").description("write all entries, newest first: CSV, with --json NDJSON"))
    .option("--since <time>", "not before: RFC 3339, a day, 15m, 24h, yesterday")
    .option("--until <time>", "before")
    .addHelpText("after", "\nExamples:\n  svc audit export --since 2026-11-01 > audit.csv")
    .action((flags: Filters) => exportAll(cli, flags));
}

function addFilters(command: Command): Command {
  return command
    .option("--action <action>", "an action such as keys.revoke, or keys.* for a prefix")
    .option("--actor <name>", "an operator's name, or the id of a key or credential")
    .option("--target <id>", "id or name of the resource acted on");
}

const columns: Column[] = [
  field("at"),
  { title: "who", of: whoOf },
  field("action"),
  field("target"),
  field("account"),
  field("source_ip"),
  field("times"),
  field("detail"),
];

function queryOf(cli: Cli, { action, actor, target }: Filters): Record<string, string | undefined> {
  return { action, actor, target, account: cli.globals.account };
}

function whoOf({ actor }: Row): unknown {
  if (typeof actor !== "object" || actor === null) return null;
  const { kind, name } = actor as Row;
  return name ?? (kind === "none" ? null : kind);
}

function timesOf(cli: Cli, { since, until }: Filters): Record<string, string> {
  const now = cli.io.clock.now();
  return {
    ...(since === undefined ? {} : { since: moment(since, "--since", "past", now) }),
    ...(until === undefined ? {} : { until: moment(until, "--until", "past", now) }),
  };
}

async function exportAll(cli: Cli, flags: Filters): Promise<void> {
  const query = { ...queryOf(cli, flags), ...timesOf(cli, flags) };
  if (cli.out.json) return printList(cli, { all: true }, { path: "/v1/audit", query, columns, empty: "" });
  for await (const chunk of cli.client.chunks("/v1/audit", { query, accept: "text/csv" })) {
    cli.io.stdout.write(chunk);
    await cli.out.drained();
  }
}

const pollMs = 1000;
/** An entry is written a moment after the time that it carries. */
const lateMs = 5000;

/**
 * Asks each second for what came since the last look, a few seconds of which are seen twice and shown once. A daemon that
 * restarts is waited for.
 */
async function tail(cli: Cli, flags: Filters): Promise<void> {
  const filters = queryOf(cli, flags);
  let from = Date.parse(timesOf(cli, flags)["since"] ?? isoTime(cli.io.clock.now()));
  let seen = new Map<string, number>();
  let asked = false;
  for (;;) {
    const look = (): Promise<Row[]> => entriesSince(cli, { ...filters, since: isoTime(from) });
    const found = await (asked ? untilAnswered(cli, look) : look());
    asked = true;
    const shown = new Map<string, number>();
    for (const entry of found.toReversed()) {
      const text = JSON.stringify(entry);
      const at = Date.parse(String(entry["at"]));
      shown.set(text, Number.isFinite(at) ? at : from);
      if (seen.has(text)) continue;
      if (cli.out.json) cli.out.body(text);
      else
        cli.out.line(
          columns
            .map(({ of }) => cell(of(entry)))
            .filter((part) => part !== "")
            .join("  "),
        );
      await cli.out.drained();
    }
    seen = shown;
    from = Math.max(from, ...[...shown.values()].map((at) => at - lateMs));
    await new Promise<void>((resolve) => void cli.io.clock.after(pollMs, resolve));
  }
}

async function entriesSince(cli: Cli, query: Record<string, string | undefined>): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const { json } = await cli.client.call("GET", "/v1/audit", { query: { ...query, cursor, limit: 1000 } });
    rows.push(...rowsOf(json));
    const next = json["has_more"] === true ? json["next_cursor"] : null;
    cursor = typeof next === "string" && next !== cursor ? next : undefined;
  } while (cursor !== undefined);
  return rows;
}
