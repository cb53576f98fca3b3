// Lists as every noun shows them: --limit, --cursor, --all, and --since and --until where the API has
// times for it; one page as the API's body, all pages as NDJSON, or a table.
import type { Command } from "commander";
import type { Cli } from "./cli.ts";
import type { Call } from "./client.ts";
import { usage } from "./fault.ts";
import type { Column, Row } from "./output.ts";
import { moment } from "./times.ts";

export interface ListFlags {
  limit?: string;
  cursor?: string;
  all?: boolean;
  since?: string;
  until?: string;
}

export interface Listing {
  path: string;
  query?: Call["query"];
  columns: Column[];
  /** Query parameters that --since and --until become. */
  times?: { since: string; until: string };
  /** Said where there is nothing. */
  empty: string;
  /** Rows to show, where not all that came. */
  keep?: (row: Row) => boolean;
  /** Said below the table of a row that needs an act; null: nothing. */
  note?: (row: Row) => string | null;
}

export function addListOptions(command: Command, withTimes: boolean): Command {
  command
    .option("--limit <n>", "rows per page")
    .option("--cursor <cursor>", "continue after this cursor")
    .option("--all", "every page (with --json: one row a line)");
  if (withTimes)
    command
      .option("--since <time>", "not before: RFC 3339, a day, 15m, 24h, yesterday")
      .option("--until <time>", "before");
  return command;
}

export async function printList(cli: Cli, flags: ListFlags, listing: Listing): Promise<void> {
  const query: Record<string, string | number | undefined> = {
    ...listing.query,
    ...pageQuery(cli, flags, listing),
  };
  const rows: Row[] = [];
  for (;;) {
    const answer = await cli.client.call("GET", listing.path, { query });
    const page = rowsOf(answer.json).filter(listing.keep ?? (() => true));
    const next = answer.json["has_more"] === true ? answer.json["next_cursor"] : null;
    const more = typeof next === "string" && next !== query["cursor"] ? next : null;
    if (cli.out.json && flags.all) for (const row of page) cli.out.body(JSON.stringify(row));
    else if (cli.out.json) cli.out.body(answer.text);
    else rows.push(...page);
    await cli.out.drained();
    if (!flags.all || more === null) {
      if (cli.out.json) return;
      if (rows.length === 0 && more === null) cli.out.note(listing.empty);
      else cli.out.table(listing.columns, rows);
      for (const row of rows) {
        const note = listing.note?.(row) ?? null;
        if (note !== null) cli.out.note(note);
      }
      if (more !== null) cli.out.next(`More rows: add --all, or --cursor ${more}`);
      return;
    }
    query["cursor"] = more;
    if (rows.length >= 10_000) cli.out.table(listing.columns, rows.splice(0));
  }
}

export function rowsOf(body: Row): Row[] {
  const data = body["data"];
  return Array.isArray(data) ? data.filter((row): row is Row => row !== null && typeof row === "object") : [];
}

function pageQuery(
  cli: Cli,
  flags: ListFlags,
  listing: Listing,
): Record<string, string | number | undefined> {
  if (flags.limit !== undefined && !/^[1-9]\d{0,5}$/.test(flags.limit))
    throw usage(`--limit: found "${flags.limit}", expected a number of rows`);
  const now = cli.io.clock.now();
  const times = listing.times;
  return {
    limit: flags.limit,
    cursor: flags.cursor,
    ...(times && flags.since !== undefined
      ? { [times.since]: moment(flags.since, "--since", "past", now) }
      : {}),
    ...(times && flags.until !== undefined
      ? { [times.until]: moment(flags.until, "--until", "past", now) }
      : {}),
  };
}
