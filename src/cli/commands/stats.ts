// `svc stats`: the statistics, as numbers, tables, CSV, and over time as bars.
import { csvCell } from "../../csv.ts";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Column, type Row } from "../output.ts";
import { fitted } from "../text.ts";

interface RangeFlags {
  from?: string;
  to?: string;
  timezone?: string;
  domain?: string;
  pool?: string;
  tag?: string;
  test?: boolean;
}
interface SeriesFlags extends RangeFlags {
  granularity?: string;
  chart?: string | true;
  csv?: boolean;
}
type ListingFlags = ListFlags & RangeFlags & { csv?: boolean };

const lists: [name: string, about: string][] = [
  ["tags", "by tag"],
  ["domains", "by sender domain"],
  ["recipient_domains", "by recipient domain"],
  ["providers", "by mailbox provider of the recipients"],
  ["ips", "by sending address"],
  ["ip_pools", "by IP pool"],
  ["bounces", "bounces by cause"],
  ["webhooks", "attempts to post events, by endpoint"],
];

export function register(stats: Command, cli: Cli): void {
  addRange(stats.command("summary", { isDefault: true }).description("counts and rates"), true).action(
    async (flags: RangeFlags) => {
      const { text, json } = await cli.client.call("GET", "/v1/stats", { query: queryOf(flags) });
      if (cli.out.json) return cli.out.body(text);
      cli.out.fields([
        ["from", json["from"]],
        ["to", json["to"]],
        ...Object.entries(part(json, "totals")),
        ...Object.entries(part(json, "rates")).map(([name, rate]): [string, string] => [name, percent(rate)]),
      ]);
      if (!flags.test && Object.values(part(json, "totals")).every((count) => count === 0))
        cli.out.note(`No data. Mail of test keys is counted separately: ${cli.program} stats --test`);
    },
  );
  addRange(stats.command("timeseries").description("counts and rates over time"), true)
    .option("--granularity <period>", "hour, day, week or month (day)")
    .option("--chart [counter]", "draw bars of a counter (delivered)")
    .option("--csv", "as CSV")
    .action((flags: SeriesFlags) => timeseries(cli, flags));
  for (const [name, about] of lists) {
    const command = stats.command(name).description(about);
    if (name.includes("_")) command.alias(name.replaceAll("_", "-"));
    addRange(addListOptions(command, false), false)
      .option("--csv", "as CSV")
      .action((flags: ListingFlags) => list(cli, name, flags));
  }
}

function addRange(command: Command, withTag: boolean): Command {
  command
    .option("--from <time>", "not before: a date, or RFC 3339 (30 days ago)")
    .option("--to <time>", "end of the range, exclusive (the end of today)")
    .option("--timezone <name>", "time zone of the days, such as Europe/Berlin (UTC)")
    .option("--domain <name>", "sent from this domain")
    .option("--pool <name>", "sent from this IP pool")
    .option("--test", "mail of test keys");
  return withTag ? command.option("--tag <tag>", "with this tag") : command;
}

function queryOf(flags: RangeFlags): Record<string, string | undefined> {
  const { from, to, timezone, domain, pool, tag, test } = flags;
  return { from, to, timezone, domain, ip_pool: pool, tag, test: test ? "true" : undefined };
}

async function timeseries(cli: Cli, flags: SeriesFlags): Promise<void> {
  const query = { ...queryOf(flags), granularity: flags.granularity };
  const { text, json } = await cli.client.call("GET", "/v1/stats/timeseries", { query });
  if (cli.out.json) return cli.out.body(text);
  const rows = rowsOf(json);
  if (flags.csv) return csv(cli, "start", rows);
  if (flags.chart !== undefined) return chart(cli, flags.chart === true ? "delivered" : flags.chart, rows);
  cli.out.table([field("start"), ...countersOf(rows)], rows);
}

async function list(cli: Cli, name: string, flags: ListingFlags): Promise<void> {
  const path = `/v1/stats/${name}`;
  const { limit, cursor } = flags;
  if (flags.csv) {
    let next = cursor;
    for (let first = true; first || next !== undefined; first = false) {
      const query = { ...queryOf(flags), limit: limit ?? "200", cursor: next };
      const { json } = await cli.client.call("GET", path, { query });
      csv(cli, "key", rowsOf(json), first);
      next = flags.all && typeof json["next_cursor"] === "string" ? json["next_cursor"] : undefined;
    }
    return;
  }
  const columns = name === "webhooks" ? webhookColumns : name === "bounces" ? bounceColumns : mailColumns;
  await printList(cli, flags, {
    path,
    query: queryOf(flags),
    columns: [field("key"), ...columns],
    empty: "No data.",
  });
}

const total = (name: string): Column => ({
  title: name.replaceAll("_", " "),
  of: (row) => part(row, "totals")[name],
});
const rate = (name: string): Column => ({
  title: name.replaceAll("_", " "),
  of: (row) => percent(part(row, "rates")[name]),
});
const mailColumns = [
  ...["accepted", "delivered", "deferred", "bounced", "complained", "unique_opened", "unique_clicked"].map(
    total,
  ),
  ...["delivery_rate", "bounce_rate", "complaint_rate"].map(rate),
];
const bounceColumns = [
  field("bounce_category", "category"),
  ...["bounced", "bounced_hard", "bounced_soft"].map(total),
  rate("bounce_rate"),
];
const webhookColumns = [
  ...["attempts", "delivered", "failed", "dead_lettered"].map(total),
  rate("success_rate"),
];

/** Columns of all that was counted at some time, accepted and delivered always. */
function countersOf(rows: Row[]): Column[] {
  const names = Object.keys(part(rows[0] ?? {}, "totals"));
  const used = (name: string): boolean => rows.some((row) => part(row, "totals")[name] !== 0);
  return names.filter((name) => name === "accepted" || name === "delivered" || used(name)).map(total);
}

/** Bars as wide as the terminal has room for, the longest for the largest. */
function chart(cli: Cli, counter: string, rows: Row[]): void {
  const found = rows.map((row) => ({
    start: label(row["start"]),
    n: Number(part(row, "totals")[counter] ?? 0),
  }));
  const most = Math.max(1, ...found.map(({ n }) => n));
  const digits = String(most).length;
  const room = Math.max(10, (cli.io.stdout.columns ?? 80) - 16 - digits - 4);
  for (const { start, n } of found) {
    const bar = "█".repeat(Math.round((n / most) * room)) || (n > 0 ? "▏" : "");
    cli.out.line(`${fitted(start, 16).padEnd(16)}  ${String(n).padStart(digits)}  ${bar}`.trimEnd());
  }
}

/** `2026-11-27 09:00` */
const label = (start: unknown): string => String(start).slice(0, 16).replace("T", " ");

function csv(cli: Cli, key: string, rows: Row[], header = true): void {
  const names = rows[0]
    ? [...Object.keys(part(rows[0], "totals")), ...Object.keys(part(rows[0], "rates"))]
    : [];
  if (header && names.length > 0) cli.out.line([key, ...names].join(","));
  for (const row of rows) {
    const numbers: Row = { ...part(row, "totals"), ...part(row, "rates") };
    cli.out.line([row[key], ...names.map((name) => numbers[name])].map(cellOf).join(","));
  }
}

/** Of a body: text or a number, and nothing for all else. */
const cellOf = (value: unknown): string =>
  csvCell(typeof value === "string" || typeof value === "number" ? value : null);

function percent(rate: unknown): string {
  return typeof rate === "number" ? `${(rate * 100).toFixed(2)} %` : "";
}

function part(row: Row, name: string): Row {
  const value = row[name];
  return value !== null && typeof value === "object" ? (value as Row) : {};
}
