// `svc webhooks`: HTTPS endpoints that get events. The signing secret is shown once, alone on stdout.
import type { Command } from "commander";
import { webhookFormatLabels } from "../../model/webhook.ts";
import { orList } from "../../word-list.ts";
import { listed, repeated, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { followDeliveries } from "../delivery-follow.ts";
import { withExample } from "../help-example.ts";
import { cell, fieldText } from "../text.ts";
import { moment } from "../times.ts";
import { routeFlags } from "../route-flags.ts";
import { addVerbs, showDeleted, showFields, type Verb } from "../verbs.ts";
import { secretFlag } from "../webhook-secret.ts";
import type { ListenFlags } from "./webhooks-listen.ts";
import type { VerifyFlags } from "./webhooks-verify.ts";

const types = "event types; repeat or separate by commas";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "add an endpoint",
    example: "webhooks create https://shop.example/hooks --events message.bounced > hook.secret",
    route: "POST /v1/webhooks",
    takes: ["url"],
    flags: [
      {
        flag: "--events <types>",
        about: `${types} (all, including those of later versions)`,
        member: "events",
        collect: listed,
      },
      ...routeFlags["POST /v1/webhooks"],
    ],
    show: showNew,
  },
  {
    name: "list",
    about: "list the endpoints",
    lists: "/v1/webhooks",
    columns: [
      ...["id", "url", "active"].map((name) => field(name)),
      {
        title: "events",
        of: (row) => (row["all_events"] === true ? "all" : fieldText("events", row["events"])),
      },
      field("consecutive_failures", "failures"),
      field("failing_since"),
      field("last_success_at"),
    ],
    empty: (program) => `No endpoints. Add one: ${program} webhooks create https://…`,
  },
  { name: "show", about: "show an endpoint", route: "GET /v1/webhooks/{id}", show: showFields },
  {
    name: "update",
    about: "change an endpoint",
    example: "webhooks update whk_… --events '*' --format both",
    route: "PATCH /v1/webhooks/{id}",
    flags: [
      { flag: "--new-url <url>", about: "URL to post events to from now on", member: "url" },
      {
        flag: "--events <types>",
        about: `${types}; *: all, including those of later versions`,
        member: "events",
        collect: listed,
      },
      ...routeFlags["PATCH /v1/webhooks/{id}"],
    ],
    show: showFields,
  },
  {
    name: "pause",
    about: "stop sending to an endpoint; events wait until it is resumed",
    example: "webhooks pause whk_…",
    route: "PATCH /v1/webhooks/{id}",
    body: { active: false },
    show: showFields,
  },
  {
    name: "resume",
    about: "resume an endpoint; waiting events are sent oldest first",
    route: "PATCH /v1/webhooks/{id}",
    body: { active: true },
    show: showFields,
  },
  {
    name: "delete",
    about: "delete an endpoint and its queued events",
    route: "DELETE /v1/webhooks/{id}",
    question: (id) => `Delete ${id}? Its queued events are not sent.`,
    show: showDeleted,
  },
];

export function register(webhooks: Command, cli: Cli): void {
  addVerbs(webhooks, cli, verbs);
  const at = (id: string): string => `/v1/webhooks/${segment(id)}`;
  webhooks
    .command("rotate <id>")
    .description("create a new signing secret; the old one also signs for a day")
    .option("--overlap <seconds>", "how long the old secret also signs, 0 to 604800", Number)
    .action(async (id: string, flags: { overlap?: number }) => {
      const body = flags.overlap === undefined ? {} : { overlap_seconds: flags.overlap };
      const answer = await cli.client.call("POST", `${at(id)}/rotate_secret`, { body });
      if (cli.out.json) return cli.out.body(answer.text);
      const until = answer.json["previous_secret_until"];
      const old = typeof until === "string" ? `also signs until ${until}` : "no longer signs";
      cli.out.note(`The old secret ${old}. The new one is shown only once:`);
      cli.out.secret(String(answer.json["secret"]));
    });
  withExample(
    addListOptions(
      webhooks.command("deliveries <id>").description("list the delivery attempts, newest event first"),
      false,
    )
      .option("--failed", "only failed attempts")
      .option("--dead", "only attempts that dead-lettered the event")
      .option("--event-id <id>", "attempts of this event")
      .option("--follow", "print attempts as they are made, until Ctrl-C"),
    "webhooks deliveries whk_… --failed --follow",
  ).action((id: string, flags: DeliveryFlags) => showDeliveries(cli, `${at(id)}/deliveries`, flags));
  addListening(webhooks, cli);
  withExample(
    webhooks
      .command("replay <id>")
      .description("queue events again: the dead-lettered ones, unless an option selects others"),
    "webhooks replay whk_…",
    "webhooks replay whk_… --event-id evt_…",
    "webhooks replay whk_… --since 2h --all",
  )
    .option("--event-id <ids>", "these events; repeat or separate by commas", listed)
    .option("--since <time>", "events that occurred at or after")
    .option("--until <time>", "events that occurred before")
    .option("--all", "include delivered events, of all types that the endpoint subscribes to")
    .action(
      async (id: string, flags: { eventId?: string[]; since?: string; until?: string; all?: boolean }) => {
        const now = cli.io.clock.now();
        const body = {
          ...(flags.eventId ? { event_ids: flags.eventId } : {}),
          ...(flags.since === undefined ? {} : { since: moment(flags.since, "--since", "past", now) }),
          ...(flags.until === undefined ? {} : { until: moment(flags.until, "--until", "past", now) }),
          ...(flags.all === true ? { status: "all" } : {}),
        };
        const answer = await cli.client.call("POST", `${at(id)}/replay`, { body });
        if (cli.out.json) return cli.out.body(answer.text);
        cli.out.note(`${String(answer.json["queued"])} events are queued again`);
      },
    );
  webhooks
    .command("test <id>")
    .description("send a test event now; exit 1 if the endpoint does not accept it")
    .option("--event <type>", "its type")
    .action(async (id: string, flags: { event?: string }) => {
      const body = flags.event === undefined ? {} : { event: flags.event };
      const answer = await cli.client.call("POST", `${at(id)}/test`, { body });
      const { delivered, status, duration_ms: duration, error } = answer.json;
      const came = answerText(status, error);
      if (cli.out.json) cli.out.body(answer.text);
      else
        cli.out.line(
          `${delivered === true ? "accepted" : "not accepted"}: ${came} in ${String(duration)} ms`,
        );
      if (delivered !== true) throw new CliFault(1, `the endpoint did not accept the event: ${came}`);
    });
}

/** What is for the one who writes a receiver. */
function addListening(webhooks: Command, cli: Cli): void {
  withExample(
    webhooks
      .command("listen")
      .description("post events as they occur to a program on this machine, signed, until Ctrl-C")
      .requiredOption("--forward-to <url>", "where to post them: http://localhost:3000/hooks")
      .option("--events <types>", "of these types; repeat or separate by commas (all)", listed)
      .option("--after <evt_…>", "start after this event, where the last run ended")
      .option("--format <name>", `signatures: ${orList(webhookFormatLabels)}`, "svc")
      .option(...secretFlag),
    "webhooks listen --forward-to http://localhost:3000/hooks",
    "webhooks listen --forward-to http://localhost:3000/hooks --events message.bounced,message.complained",
  ).action(async (flags: ListenFlags) => (await import("./webhooks-listen.ts")).listen(cli, flags));
  withExample(
    webhooks
      .command("verify [body]")
      .description(
        "check a request's signature as a receiver does, and say why it does not match; exit 7 where it is refused. The body is a file, or standard input",
      )
      .option("--headers <file>", "file with the request's header lines, Name: value")
      .option("--header <line>", "one header line; repeat", repeated)
      .option("--at <time>", "the receiver's clock: when the request came in (now)")
      .option(...secretFlag),
    "webhooks verify body.json --headers headers.txt --secret-file hook.secret",
    'webhooks verify body.json --header "X-Svc-Timestamp: 1764233122" --header "X-Svc-Signature: sha256=…"',
  ).action(async (body: string | undefined, flags: VerifyFlags) =>
    (await import("./webhooks-verify.ts")).verify(cli, body, flags),
  );
}

interface DeliveryFlags extends ListFlags {
  failed?: boolean;
  dead?: boolean;
  eventId?: string;
  follow?: boolean;
}

const attemptColumns = [
  field("attempted_at", "at"),
  field("event_id", "event"),
  field("attempt"),
  field("status"),
  { title: "answer", of: answerOf },
  field("duration_ms", "ms"),
  field("next_attempt_at", "next"),
];

async function showDeliveries(cli: Cli, path: string, flags: DeliveryFlags): Promise<void> {
  const statuses = [
    ...(flags.failed ? ["failed"] : []),
    ...(flags.failed || flags.dead ? ["dead_lettered"] : []),
  ];
  const query = {
    status: statuses.length === 0 ? undefined : statuses.join(","),
    event_id: flags.eventId,
  };
  if (!flags.follow)
    return printList(cli, flags, { path, query, columns: attemptColumns, empty: "No attempts." });
  for (const name of ["all", "cursor", "limit"] as const)
    if (flags[name] !== undefined) throw usage(`--follow: found --${name} beside it, expected one of them`);
  for await (const rows of followDeliveries(cli, path, query)) {
    for (const row of rows)
      if (cli.out.json) cli.out.body(JSON.stringify(row));
      else
        cli.out.line(
          attemptColumns
            .map((column) => cell(column.of(row)))
            .join("  ")
            .trimEnd(),
        );
    await cli.out.drained();
  }
}

/** Of an attempt: the status and how the answer begins, or why there was none. */
function answerOf({ response_status: status, response_body: body, error }: Row): unknown {
  if (typeof status !== "number") return error;
  return typeof body === "string" && body !== "" ? `${status} ${body.slice(0, 200)}` : status;
}

function answerText(status: unknown, error: unknown): string {
  if (typeof status === "number") return `HTTP ${status}`;
  return typeof error === "string" ? `no answer (${error})` : "no answer";
}

function showNew(cli: Cli, { json: { id, secret } }: Answer): void {
  cli.out.note(`${String(id)}. The signing secret is shown only once:`);
  cli.out.secret(String(secret));
  cli.out.next(`Try it: ${cli.program} webhooks test ${String(id)}`);
}
