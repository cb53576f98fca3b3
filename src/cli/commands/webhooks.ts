// `svc webhooks`: HTTPS endpoints that get events. The signing secret is shown once, alone on stdout.
import type { Command } from "commander";
import { webhookFormats } from "../../model/webhook.ts";
import { orList } from "../../word-list.ts";
import { listed, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { fieldText } from "../text.ts";
import { moment } from "../times.ts";
import { addVerbs, showDeleted, showFields, type Flag, type Verb } from "../verbs.ts";

const formats = webhookFormats.map((name) => (name === "standard" ? `${name} (Standard Webhooks)` : name));

const flags: readonly Flag[] = [
  { flag: "--description <text>", about: "what it is for", member: "description" },
  { flag: "--format <name>", about: `signatures: ${orList(formats)}`, member: "format" },
];
const types = "event types; repeat or separate by commas";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "add an endpoint",
    route: "POST /v1/webhooks",
    takes: ["url"],
    flags: [
      {
        flag: "--events <types>",
        about: `${types} (all, including those of later versions)`,
        member: "events",
        collect: listed,
      },
      ...flags,
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
      field("last_success_at"),
    ],
    empty: (program) => `No endpoints. Add one: ${program} webhooks create https://…`,
  },
  { name: "show", about: "show an endpoint", route: "GET /v1/webhooks/{id}", show: showFields },
  {
    name: "update",
    about: "change an endpoint",
    route: "PATCH /v1/webhooks/{id}",
    flags: [
      { flag: "--url <url>", about: "URL to post events to", member: "url" },
      {
        flag: "--events <types>",
        about: `${types}; *: all, including those of later versions`,
        member: "events",
        collect: listed,
      },
      ...flags,
    ],
    show: showFields,
  },
  {
    name: "pause",
    about: "stop sending to an endpoint; events wait until it is resumed",
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
  addListOptions(
    webhooks.command("deliveries <id>").description("list the delivery attempts, newest event first"),
    false,
  )
    .option("--failed", "only failed attempts")
    .option("--dead", "only attempts that dead-lettered the event")
    .option("--event-id <id>", "attempts of this event")
    .action((id: string, flags: ListFlags & { failed?: boolean; dead?: boolean; eventId?: string }) => {
      const statuses = [
        ...(flags.failed ? ["failed"] : []),
        ...(flags.failed || flags.dead ? ["dead_lettered"] : []),
      ];
      return printList(cli, flags, {
        path: `${at(id)}/deliveries`,
        query: {
          status: statuses.length === 0 ? undefined : statuses.join(","),
          event_id: flags.eventId,
        },
        columns: [
          field("attempted_at", "at"),
          field("event_id", "event"),
          field("attempt"),
          field("status"),
          { title: "answer", of: answerOf },
          field("duration_ms", "ms"),
          field("next_attempt_at", "next"),
        ],
        empty: "No attempts.",
      });
    });
  webhooks
    .command("replay <id>")
    .description("queue events again: the dead-lettered ones, unless an option selects others")
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
