// `svc webhooks`: HTTPS endpoints that get events. The signing secret is shown once, alone on stdout.
import type { Command } from "commander";
import { webhookFormats } from "../../model/webhook.ts";
import { orList } from "../../word-list.ts";
import { listed, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
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
        about: `${types} (all, those of later versions too)`,
        member: "events",
        collect: listed,
      },
      ...flags,
    ],
    show: showNew,
  },
  {
    name: "list",
    about: "all endpoints",
    lists: "/v1/webhooks",
    columns: [
      ...["id", "url", "active", "events"].map((name) => field(name)),
      field("consecutive_failures", "failures"),
      field("last_success_at"),
    ],
    empty: (program) => `There is no endpoint. Add one: ${program} webhooks create https://…`,
  },
  { name: "show", about: "one endpoint", route: "GET /v1/webhooks/{id}", show: showFields },
  {
    name: "update",
    about: "change an endpoint",
    route: "PATCH /v1/webhooks/{id}",
    flags: [
      { flag: "--url <url>", about: "where events go", member: "url" },
      {
        flag: "--events <types>",
        about: `${types}; *: all, those of later versions too`,
        member: "events",
        collect: listed,
      },
      ...flags,
    ],
    show: showFields,
  },
  {
    name: "pause",
    about: "hold events back until it is resumed",
    route: "PATCH /v1/webhooks/{id}",
    body: { active: false },
    show: showFields,
  },
  {
    name: "resume",
    about: "send again; what waited goes out oldest first",
    route: "PATCH /v1/webhooks/{id}",
    body: { active: true },
    show: showFields,
  },
  {
    name: "delete",
    about: "remove an endpoint and what waits for it",
    route: "DELETE /v1/webhooks/{id}",
    question: (id) => `Delete ${id}? What waits for it is not sent.`,
    show: showDeleted,
  },
];

export function register(webhooks: Command, cli: Cli): void {
  addVerbs(webhooks, cli, verbs);
  const at = (id: string): string => `/v1/webhooks/${segment(id)}`;
  webhooks
    .command("rotate <id>")
    .description("a new signing secret; the old one signs too for a day")
    .option("--overlap <seconds>", "for how long the old one signs too, 0 to 604800", Number)
    .action(async (id: string, flags: { overlap?: number }) => {
      const body = flags.overlap === undefined ? {} : { overlap_seconds: flags.overlap };
      const answer = await cli.client.call("POST", `${at(id)}/rotate_secret`, { body });
      if (cli.out.json) return cli.out.body(answer.text);
      const until = answer.json["previous_secret_until"];
      const old = typeof until === "string" ? `signs too until ${until}` : "does not sign any more";
      cli.out.note(`The old secret ${old}. The new one is shown this once:`);
      cli.out.secret(String(answer.json["secret"]));
    });
  addListOptions(
    webhooks.command("deliveries <id>").description("every attempt, of the newest event first"),
    false,
  )
    .option("--failed", "those that failed")
    .option("--dead", "those after which the event was given up")
    .option("--event-id <id>", "those of one event")
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
        empty: "No attempt was found.",
      });
    });
  webhooks
    .command("replay <id>")
    .description("send events again: what was dead-lettered, unless told otherwise")
    .option("--event-id <ids>", "these events; repeat or separate by commas", listed)
    .option("--since <time>", "that occurred from then on")
    .option("--until <time>", "that occurred before then")
    .option("--all", "delivered ones too, of all types that the endpoint gets")
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
        cli.out.note(`${String(answer.json["queued"])} events are in line again`);
      },
    );
  webhooks
    .command("test <id>")
    .description("send one event now; exit 1 where it is not taken")
    .option("--event <type>", "its type")
    .action(async (id: string, flags: { event?: string }) => {
      const body = flags.event === undefined ? {} : { event: flags.event };
      const answer = await cli.client.call("POST", `${at(id)}/test`, { body });
      const { delivered, status, duration_ms: duration, error } = answer.json;
      const came = answerText(status, error);
      if (cli.out.json) cli.out.body(answer.text);
      else cli.out.line(`${delivered === true ? "taken" : "not taken"}: ${came} in ${String(duration)} ms`);
      if (delivered !== true) throw new CliFault(1, `the endpoint did not take the event: ${came}`);
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
  cli.out.note(`${String(id)}. The signing secret is shown this once:`);
  cli.out.secret(String(secret));
  cli.out.next(`Try it: ${cli.program} webhooks test ${String(id)}`);
}
