// `svc suppressions`: the suppression list, addresses that no mail is sent to.
import type { Command } from "commander";
import { reasonStrength, suppressionReasons, suppressionSources } from "../../model/suppression.ts";
import { orList } from "../../word-list.ts";
import type { Cli } from "../cli.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { withExample } from "../help-example.ts";
import { field, type Row } from "../output.ts";
import { serviceNames } from "../suppression-files.ts";
import { moment } from "../times.ts";
import { addVerbs, showFields, type Verb } from "../verbs.ts";
import { importSuppressions, type ImportFlags } from "./suppressions-import.ts";

interface AddFlags {
  reason?: string;
  description?: string;
  expires?: string;
}
interface FilterFlags extends ListFlags {
  reason?: string;
  source?: string;
  domain?: string;
  prefix?: string;
}

const byStrength = suppressionReasons.toSorted((a, b) => reasonStrength[a] - reasonStrength[b]);

export const verbs: readonly Verb[] = [
  {
    name: "remove",
    about: "remove an address from the suppression list",
    example: "suppressions remove someone@example.net",
    route: "DELETE /v1/suppressions/{email}",
    show: (cli, _answer, email) => cli.out.note(`${email} may be sent to again`),
  },
  {
    name: "show",
    about: "show why an address is suppressed",
    route: "GET /v1/suppressions/{email}",
    show: showFields,
  },
];

export function register(suppressions: Command, cli: Cli): void {
  suppressions
    .command("add <email...>")
    .description("add addresses to the suppression list")
    .option("--reason <reason>", `${orList(byStrength)} (manual)`)
    .option("--description <text>", "why")
    .option("--expires <time>", "remove it again then: a time, or a span such as 90d")
    .action(async (emails: string[], flags: AddFlags) => {
      const body = {
        emails,
        ...(flags.reason === undefined ? {} : { reason: flags.reason }),
        ...(flags.description === undefined ? {} : { description: flags.description }),
        ...(flags.expires === undefined
          ? {}
          : { expires_at: moment(flags.expires, "--expires", "future", cli.io.clock.now()) }),
      };
      const answer = await cli.client.call("POST", "/v1/suppressions", { body });
      if (cli.out.json) return cli.out.body(answer.text);
      const { added, updated, already_suppressed: already } = answer.json;
      cli.out.line(`added ${String(added)}, updated ${String(updated)}, already there ${String(already)}`);
    });
  addVerbs(suppressions, cli, verbs);
  addFilters(
    addListOptions(suppressions.command("list").description("list the suppressions, by address"), true),
  ).action((flags: FilterFlags) =>
    printList(cli, flags, {
      path: "/v1/suppressions",
      query: queryOf(flags),
      times,
      columns: ["email", "reason", "source", "created_at", "expires_at", "description"].map((name) =>
        field(name),
      ),
      empty: "No suppressions.",
    }),
  );
  withExample(
    addTimes(addFilters(suppressions.command("count").description("count the suppressions, by reason"))),
    "suppressions count --since 7d",
  ).action(async (flags: FilterFlags) => {
    const answer = await cli.client.call("GET", "/v1/suppression_count", {
      query: queryWithTimes(cli, flags),
    });
    if (cli.out.json) return cli.out.body(answer.text);
    const { total, by_reason: byReason, complete } = answer.json;
    cli.out.fields([...Object.entries((byReason ?? {}) as Row), ["total", total]]);
    if (complete === false)
      cli.out.note("The list is too long to be counted in ten seconds: there are more.");
  });
  suppressions
    .command("import <file>")
    .description("add the addresses of another service's suppression list (CSV or JSON), or of plain CSV")
    .option("--from <service>", `${orList(serviceNames)}: by the columns`, "auto")
    .option("--reason <reason>", `for a file that does not say: ${orList(suppressionReasons)}`)
    .option("--dry-run", "read and count, change nothing")
    .action((file: string, flags: ImportFlags) => importSuppressions(cli, file, flags));
  addTimes(
    addFilters(
      suppressions.command("export").description("write the suppressions as CSV to standard output"),
    ),
  ).action(async (flags: FilterFlags) => {
    const query = queryWithTimes(cli, flags);
    for await (const chunk of cli.client.chunks("/v1/suppressions", { query, accept: "text/csv" })) {
      cli.io.stdout.write(chunk);
      await cli.out.drained();
    }
  });
}

const times = { since: "created_after", until: "created_before" };

function addTimes(command: Command): Command {
  return command
    .option("--since <time>", "added at or after: a time, or a span such as 24h")
    .option("--until <time>", "added before: a time, or a span");
}

function queryWithTimes(cli: Cli, flags: FilterFlags): Record<string, string | undefined> {
  const now = cli.io.clock.now();
  return {
    ...queryOf(flags),
    ...(flags.since === undefined ? {} : { [times.since]: moment(flags.since, "--since", "past", now) }),
    ...(flags.until === undefined ? {} : { [times.until]: moment(flags.until, "--until", "past", now) }),
  };
}

function addFilters(command: Command): Command {
  return command
    .option("--reason <reason>", orList(suppressionReasons))
    .option("--source <source>", orList(suppressionSources))
    .option("--domain <domain>", "addresses of this domain")
    .option("--prefix <text>", "addresses that begin with this");
}

function queryOf({ reason, source, domain, prefix }: FilterFlags): Record<string, string | undefined> {
  return { reason, source, domain, email_prefix: prefix };
}
