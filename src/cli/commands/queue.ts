// `svc queue`: what waits to be sent and why, and acts on it. An act counts first, prints the count and asks.
import type { Command } from "commander";
import { isoTime } from "../../clock.ts";
import { queueGroupings } from "../../model/queue-entry.ts";
import { pauseScopes, type PauseScope } from "../../model/queue-pause.ts";
import { orList } from "../../word-list.ts";
import { agree } from "../ask.ts";
import type { Cli } from "../cli.ts";
import { usage } from "../fault.ts";
import { addFilters, filtersOf, type FilterFlags } from "../filters.ts";
import { withExample } from "../help-example.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field } from "../output.ts";
import { cell } from "../text.ts";
import { spanMs } from "../times.ts";

/** Beside what it has in common with messages and events. */
const own = {
  provider: ["<name>", "last tried at this provider (google) or mail host's domain"],
  status: ["<status>", "scheduled, queued, deferred, held, sending"],
} as const;
type QueueFlags = FilterFlags & { [name in keyof typeof own]?: string };

interface Act {
  name: string;
  about: string;
  /** `Retry`, in the question. */
  verb: string;
  done: string;
  warning?: string;
}

const acts: readonly Act[] = [
  { name: "retry", about: "try deferred recipients now", verb: "Retry", done: "due now" },
  {
    name: "hold",
    about: "hold recipients until they are released; held time does not count towards their age",
    verb: "Hold",
    done: "held",
  },
  { name: "release", about: "release what was held", verb: "Release", done: "released" },
  {
    name: "fail",
    about: "bounce recipients without another attempt, with an event",
    verb: "Fail",
    done: "bounced",
    warning: " This cannot be undone.",
  },
  {
    name: "delete",
    about: "cancel recipients, without an event",
    verb: "Delete",
    done: "canceled",
    warning: " This cannot be undone.",
  },
];

export function register(queue: Command, cli: Cli): void {
  addQueueFilters(
    addListOptions(
      queue.command("list").description("list what is in the queue, with the last reply"),
      false,
    ),
  ).action((flags: ListFlags & QueueFlags) =>
    printList(cli, flags, {
      path: "/v1/queue",
      query: queryOf(cli, flags),
      columns: [
        field("message_id", "message"),
        field("email", "to"),
        field("status"),
        field("attempts"),
        field("next_attempt_at", "next attempt"),
        field("ip_pool", "pool"),
        field("provider"),
        field("paused_by", "paused by"),
        field("smtp_response", "last reply"),
      ],
      empty: "Nothing.",
    }),
  );
  addQueueFilters(queue.command("count").description("count what is in the queue"))
    .option("--by <what>", orList(queueGroupings), "domain")
    .option("--limit <n>", "groups to show, the largest first")
    .action(async (flags: QueueFlags & { by: string; limit?: string }) => {
      const query = { ...queryOf(cli, flags), by: flags.by, limit: flags.limit };
      const answer = await cli.client.call("GET", "/v1/queue/count", { query });
      if (cli.out.json) return cli.out.body(answer.text);
      const groups = rowsOf({ data: answer.json["groups"] });
      if (groups.length === 0) cli.out.note("Nothing.");
      else
        cli.out.table(
          [
            { title: flags.by, of: (row) => row["value"] ?? "(not tried yet)" },
            field("recipients"),
            field("held"),
            field("next_attempt_at", "next attempt"),
          ],
          groups,
        );
      cli.out.note(totalOf(answer.json));
    });
  for (const act of acts) addAct(queue, cli, act);
  addPauses(queue, cli);
}

function addPauses(queue: Command, cli: Cli): void {
  withExample(
    addScopes(queue.command("pause").description("make no attempts for a domain, provider, pool or address")),
    "queue pause --domain example.com --for 2h",
  )
    .option("--for <span>", "how long: 30m, 2h, 1d; until it is resumed if left out")
    .option("--yes", "skip the prompt")
    .action(async (flags: ScopeFlags & { for?: string; yes?: boolean }) => {
      const { scope, name } = scopeOf(flags);
      const until = flags.for === undefined ? {} : { until: untilOf(cli, flags.for) };
      if (flags.yes !== true) {
        const query = { [scope]: name, by: "status" };
        const { json } = await cli.client.call("GET", "/v1/queue/count", { query });
        const known = scope === "provider" || scope === "ip" ? " last tried there" : "";
        // Only a pool is one account's; what the others have is not counted.
        const [whose, ofAll] = scope === "pool" ? ["", ""] : [" of this account", ", of every account"];
        await agree(cli, `${totalOf(json, `${whose}${known}`)} Pause the ${scope} ${name}${ofAll}?`, false);
      }
      const answer = await cli.client.call("POST", "/v1/queue/pause", { body: { scope, name, ...until } });
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(pauseText(answer.json));
      cli.out.next(`To end it: ${cli.program} queue resume --${scope} ${name}`);
    });
  addScopes(queue.command("resume").description("end a pause; its mail is tried at once")).action(
    async (flags: ScopeFlags) => {
      const { scope, name } = scopeOf(flags);
      await cli.client.call("POST", "/v1/queue/resume", { body: { scope, name } });
      if (!cli.out.json) cli.out.line(`${scope} ${name} is resumed`);
    },
  );
  queue
    .command("pauses")
    .description("list the pauses")
    .action(async () => {
      const answer = await cli.client.call("GET", "/v1/queue/pauses");
      if (cli.out.json) return cli.out.body(answer.text);
      const rows = rowsOf(answer.json);
      if (rows.length === 0) cli.out.note("No pauses.");
      else
        cli.out.table(
          ["scope", "name", "since", "until"].map((name) => field(name)),
          rows,
        );
    });
}

type ScopeFlags = { [scope in PauseScope]?: string };

function addScopes(command: Command): Command {
  return command
    .option("--domain <domain>", "mail to this domain, of every account")
    .option("--provider <name>", "mail to this provider (google) or mail host's domain, of every account")
    .option("--pool <name>", "mail of this IP pool of the account")
    .option("--ip <address>", "mail from this address; that of its pool leaves from the others");
}

function scopeOf(flags: ScopeFlags): { scope: PauseScope; name: string } {
  const given = pauseScopes.flatMap((scope) => {
    const name = flags[scope];
    return name === undefined ? [] : [{ scope, name }];
  });
  const [one] = given;
  if (!one || given.length > 1) throw usage("give one of --domain, --provider, --pool and --ip");
  return one;
}

function untilOf(cli: Cli, span: string): string {
  return isoTime(cli.io.clock.now() + spanMs(span, "--for"));
}

function pauseText({ scope, name, until }: Record<string, unknown>): string {
  return `${cell(scope)} ${cell(name)} is paused ${typeof until === "string" ? `until ${cell(until)}` : "until it is resumed"}`;
}

function addAct(queue: Command, cli: Cli, { name, about, verb, done, warning = "" }: Act): void {
  addQueueFilters(queue.command(name).description(about))
    .option("--all", "all of the account's recipients, where no filter is given")
    .option("--yes", "skip the prompt")
    .action(async (flags: QueueFlags & { all?: boolean; yes?: boolean }) => {
      const body = queryOf(cli, flags);
      if (Object.keys(body).length === 0 && flags.all !== true)
        throw usage(
          `${name} needs a filter, as --domain, or --all`,
          `To see what there is: ${cli.program} queue count`,
        );
      if (flags.yes !== true) {
        const { json, text } = await cli.client.call("GET", "/v1/queue/count", {
          query: { ...body, by: "status" },
        });
        if (Number(json["recipients"]) === 0 && json["complete"] !== false)
          return cli.out.json ? cli.out.body(text) : cli.out.line("0 recipients; nothing to do");
        await agree(cli, `${totalOf(json)} ${verb} them?${warning}`, false);
      }
      let recipients = 0;
      for (let cursor: unknown; ;) {
        const { json, text } = await cli.client.call("POST", `/v1/queue/${name}`, {
          body: { ...body, ...(cursor === undefined ? {} : { cursor }) },
        });
        if (cli.out.json) cli.out.body(text);
        recipients += Number(json["recipients"]);
        cursor = json["next_cursor"];
        if (json["has_more"] !== true) break;
      }
      if (!cli.out.json)
        cli.out.line(`${recipients} ${recipients === 1 ? "recipient" : "recipients"} ${done}`);
    });
}

function addQueueFilters(command: Command): Command {
  addFilters(command);
  for (const [name, [value, about]] of Object.entries(own)) command.option(`--${name} ${value}`, about);
  return command;
}

function queryOf(cli: Cli, flags: QueueFlags): Record<string, string> {
  const { provider, status } = flags;
  return {
    ...filtersOf(cli, flags),
    ...(provider === undefined ? {} : { provider }),
    ...(status === undefined ? {} : { status }),
  };
}

function totalOf(counted: Record<string, unknown>, what = ""): string {
  const [recipients, held] = [Number(counted["recipients"]), Number(counted["held"])];
  const more = counted["complete"] === false ? "more than " : "";
  return `${more}${recipients} ${recipients === 1 ? "recipient" : "recipients"}${what}${held > 0 ? `, ${held} of them held` : ""}.`;
}
