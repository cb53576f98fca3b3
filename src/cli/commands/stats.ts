// `svc stats`: the statistics, as numbers, tables and CSV, and drawn: over time as columns, by name as bars.
import { csvCell } from "../../csv.ts";
import type { Command } from "commander";
import { barChart, columnChart } from "../chart.ts";
import type { Cli } from "../cli.ts";
import { usage } from "../fault.ts";
import { glyphsOf } from "../glyphs.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Column, type Row } from "../output.ts";
import { cell } from "../text.ts";
import { moment } from "../times.ts";

interface RangeFlags {
  from?: string;
  to?: string;
  timezone?: string;
  domain?: string;
  pool?: string;
  tag?: string;
  test?: boolean;
}
interface FormFlags {
  chart?: string | true;
  csv?: boolean;
}
type SummaryFlags = RangeFlags & FormFlags;
interface SeriesFlags extends RangeFlags, FormFlags {
  granularity?: string;
}
type ListingFlags = ListFlags & RangeFlags & FormFlags;

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
  addForms(
    addRange(stats.command("summary", { isDefault: true }).description("counts and rates"), true),
  ).action((flags: SummaryFlags) => summary(cli, flags));
  addForms(addRange(stats.command("timeseries").description("counts and rates over time"), true))
    .option("--granularity <period>", "hour, day, week or month (day)")
    .action((flags: SeriesFlags) => timeseries(cli, flags));
  for (const [name, about] of lists) {
    const command = stats.command(name).description(about);
    if (name.includes("_")) command.alias(name.replaceAll("_", "-"));
    addForms(addRange(addListOptions(command, false), false)).action((flags: ListingFlags) =>
      list(cli, name, flags),
    );
  }
  stats.addHelpText(
    "afterAll",
    `
Examples:
  svc stats --chart
  svc stats timeseries --granularity hour --from 2026-11-27 --chart bounced
  svc stats providers --chart deferred
  svc stats recipient-domains --csv --all > domains.csv`,
  );
}

function addForms(command: Command): Command {
  return command
    .option("--chart [counter]", "draw a counter, in the terminal's width")
    .option("--csv", "as CSV");
}

/** One form of the three. */
function refuseTwoForms({ out }: Cli, { csv, chart }: FormFlags): void {
  const given = [out.json && "--json", csv && "--csv", chart !== undefined && "--chart"].filter(
    (flag) => flag !== false && flag !== undefined,
  );
  if (given.length > 1) throw usage(`found ${given.join(" and ")}, expected one of them`);
}

function addRange(command: Command, withTag: boolean): Command {
  command
    .option("--from <time>", "not before: a date, RFC 3339, 24h, yesterday (30 days ago)")
    .option("--to <time>", "end of the range, exclusive (the end of today)")
    .option("--timezone <name>", "time zone of the days, such as Europe/Berlin (UTC)")
    .option("--domain <name>", "sent from this domain")
    .option("--pool <name>", "sent from this IP pool")
    .option("--test", "mail of test keys");
  return withTag ? command.option("--tag <tag>", "with this tag") : command;
}

/** A date is one of --timezone, which the daemon knows. */
function boundOf(cli: Cli, text: string | undefined, flag: string): string | undefined {
  if (text === undefined || /^\d{4}-\d\d-\d\d$/.test(text)) return text;
  return moment(text, flag, "past", cli.io.clock.now());
}

function queryOf(cli: Cli, flags: RangeFlags): Record<string, string | undefined> {
  const { timezone, domain, pool, tag, test } = flags;
  const [from, to] = [boundOf(cli, flags.from, "--from"), boundOf(cli, flags.to, "--to")];
  return { from, to, timezone, domain, ip_pool: pool, tag, test: test ? "true" : undefined };
}

async function summary(cli: Cli, flags: SummaryFlags): Promise<void> {
  refuseTwoForms(cli, flags);
  const { text, json } = await cli.client.call("GET", "/v1/stats", { query: queryOf(cli, flags) });
  if (cli.out.json) return cli.out.body(text);
  const totals = part(json, "totals");
  if (flags.csv) csv(cli, ["from", "to"], [json]);
  else if (flags.chart !== undefined) {
    const only = flags.chart === true ? null : counterOf(flags.chart, totals);
    const names = only === null ? Object.keys(totals) : [only];
    bars(
      cli,
      `${cell(json["from"])} to ${cell(json["to"])}`,
      names.map((name) => ({ name, value: Number(totals[name]) })),
    );
  } else
    cli.out.fields([
      ["from", json["from"]],
      ["to", json["to"]],
      ...Object.entries(totals),
      ...Object.entries(part(json, "rates")).map(([name, rate]): [string, string] => [name, percent(rate)]),
    ]);
  if (!flags.test && Object.values(totals).every((count) => count === 0))
    cli.out.note(`No data. Mail of test keys is counted separately: ${cli.program} stats --test`);
}

async function timeseries(cli: Cli, flags: SeriesFlags): Promise<void> {
  refuseTwoForms(cli, flags);
  const query = { ...queryOf(cli, flags), granularity: flags.granularity };
  const { text, json } = await cli.client.call("GET", "/v1/stats/timeseries", { query });
  if (cli.out.json) return cli.out.body(text);
  const rows = rowsOf(json);
  if (flags.csv) return csv(cli, ["start"], rows);
  if (flags.chart !== undefined)
    return overTime(cli, flags.chart === true ? "delivered" : flags.chart, json, rows);
  cli.out.table([field("start"), ...countersOf(rows)], rows);
}

async function list(cli: Cli, name: string, flags: ListingFlags): Promise<void> {
  refuseTwoForms(cli, flags);
  const path = `/v1/stats/${name}`;
  if (flags.csv) return listCsv(cli, path, flags);
  if (flags.chart !== undefined) {
    const { limit = "20", cursor } = flags;
    const { json } = await cli.client.call("GET", path, { query: { ...queryOf(cli, flags), limit, cursor } });
    return byName(cli, name, flags.chart, json);
  }
  const columns = name === "webhooks" ? webhookColumns : name === "bounces" ? bounceColumns : mailColumns;
  return printList(cli, flags, {
    path,
    query: queryOf(cli, flags),
    columns: [field("key"), ...columns],
    empty: "No data.",
  });
}

async function listCsv(cli: Cli, path: string, flags: ListingFlags): Promise<void> {
  const { limit = "200", cursor } = flags;
  let next = cursor;
  for (let first = true; first || next !== undefined; first = false) {
    const { json } = await cli.client.call("GET", path, {
      query: { ...queryOf(cli, flags), limit, cursor: next },
    });
    csv(cli, path.endsWith("/bounces") ? ["key", "bounce_category"] : ["key"], rowsOf(json), first);
    await cli.out.drained();
    const following = flags.all ? json["next_cursor"] : null;
    next = typeof following === "string" && following !== next ? following : undefined;
  }
}

/** What a list counts first, where the first of its counters is another. */
const firstCounters: Record<string, string> = { webhooks: "attempts", bounces: "bounced" };

function byName(cli: Cli, name: string, chosen: string | true, json: Row): void {
  const rows = rowsOf(json);
  const first = firstCounters[name] ?? "delivered";
  const counter = chosen === true ? first : counterOf(chosen, part(rows[0] ?? json, "totals"));
  if (rows.length === 0) return cli.out.note("No data.");
  bars(
    cli,
    counter.replaceAll("_", " "),
    rows.map((row) => ({ name: String(row["key"]), value: Number(part(row, "totals")[counter] ?? 0) })),
  );
  const more = json["next_cursor"];
  if (typeof more === "string") cli.out.next(`More: --limit N, or --cursor ${more}`);
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

function bars(cli: Cli, title: string, rows: { name: string; value: number }[]): void {
  cli.out.line(title);
  for (const line of barChart(rows, cli.io.stdout.columns, glyphsOf(cli.io))) cli.out.line(line);
}

function overTime(cli: Cli, chosen: string, json: Row, rows: Row[]): void {
  const counter = counterOf(chosen, part(json, "totals"));
  const total = Number(part(json, "totals")[counter] ?? 0).toLocaleString("en");
  const by = typeof json["granularity"] === "string" ? `, by ${json["granularity"]}` : "";
  cli.out.line(`${counter.replaceAll("_", " ")}${by}: ${total}`);
  const points = rows.map((row) => ({
    label: label(row["start"], json["granularity"]),
    value: Number(part(row, "totals")[counter] ?? 0),
  }));
  for (const line of columnChart(points, cli.io.stdout.columns, glyphsOf(cli.io))) cli.out.line(line);
}

/** A counter that the answer has. */
function counterOf(chosen: string, totals: Row): string {
  const name = chosen.replaceAll("-", "_");
  const known = Object.keys(totals);
  if (known.length === 0 || known.includes(name)) return name;
  throw usage(`--chart: found "${chosen}", expected one of ${known.join(", ")}`);
}

/** `2026-11-27`, of hours `2026-11-27 09:00`. */
const label = (start: unknown, granularity: unknown): string =>
  String(start)
    .slice(0, granularity === "hour" ? 16 : 10)
    .replace("T", " ");

/** `keys`: the members of a row that say what it is about. */
function csv(cli: Cli, keys: readonly string[], rows: Row[], header = true): void {
  const names = rows[0]
    ? [...Object.keys(part(rows[0], "totals")), ...Object.keys(part(rows[0], "rates"))]
    : [];
  if (header && names.length > 0) cli.out.line([...keys, ...names].join(","));
  for (const row of rows) {
    const numbers: Row = { ...part(row, "totals"), ...part(row, "rates") };
    cli.out.line(
      [...keys.map((key) => row[key]), ...names.map((name) => numbers[name])].map(cellOf).join(","),
    );
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
