// `svc webhooks`: HTTPS endpoints that get events. The signing secret is shown once, alone on stdout.
import type { Command } from "commander";
import { webhookFormats } from "../../model/webhook.ts";
import { orList } from "../../word-list.ts";
import { agree } from "../ask.ts";
import { listed, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { moment } from "../times.ts";

interface EndpointFlags {
  url?: string;
  events?: string[];
  description?: string;
  format?: string;
}

const formats = webhookFormats.map((name) => (name === "standard" ? `${name} (Standard Webhooks)` : name));

export function register(webhooks: Command, cli: Cli): void {
  const at = (id: string): string => `/v1/webhooks/${segment(id)}`;
  webhooks
    .command("create <url>")
    .description("add an endpoint")
    .option(
      "--events <types>",
      "event types; repeat or separate by commas (all, including those of later versions)",
      listed,
    )
    .option("--description <text>", "what it is for")
    .option("--format <name>", `signatures: ${orList(formats)}`)
    .action(async (url: string, flags: EndpointFlags) => {
      const answer = await cli.client.call("POST", "/v1/webhooks", { body: { url, ...bodyOf(flags) } });
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.note(`${String(answer.json["id"])}. The signing secret is shown only once:`);
      cli.out.secret(String(answer.json["secret"]));
      cli.out.next(`Try it: ${cli.program} webhooks test ${String(answer.json["id"])}`);
    });
  addListOptions(webhooks.command("list").description("list the endpoints"), false).action(
    (flags: ListFlags) =>
      printList(cli, flags, {
        path: "/v1/webhooks",
        columns: ["id", "url", "active", "events", "consecutive_failures", "last_success_at"].map((name) =>
          field(name, name === "consecutive_failures" ? "failures" : name.replaceAll("_", " ")),
        ),
        empty: `No endpoints. Add one: ${cli.program} webhooks create https://…`,
      }),
  );
  webhooks
    .command("show <id>")
    .description("show an endpoint")
    .action(async (id: string) => show(cli, await cli.client.call("GET", at(id))));
  webhooks
    .command("update <id>")
    .description("change an endpoint")
    .option("--url <url>", "URL to post events to")
    .option(
      "--events <types>",
      "event types; repeat or separate by commas; *: all, including those of later versions",
      listed,
    )
    .option("--description <text>", "what it is for")
    .option("--format <name>", `signatures: ${orList(formats)}`)
    .action(async (id: string, flags: EndpointFlags) => {
      const body = { ...(flags.url === undefined ? {} : { url: flags.url }), ...bodyOf(flags) };
      if (Object.keys(body).length === 0)
        throw usage("nothing to change: give --url, --events, --description or --format");
      show(cli, await cli.client.call("PATCH", at(id), { body }));
    });
  for (const [verb, active] of [
    ["pause", false],
    ["resume", true],
  ] as const)
    webhooks
      .command(`${verb} <id>`)
      .description(
        active
          ? "resume an endpoint; waiting events are sent oldest first"
          : "stop sending to an endpoint; events wait until it is resumed",
      )
      .action(async (id: string) => show(cli, await cli.client.call("PATCH", at(id), { body: { active } })));
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
    .command("delete <id>")
    .description("delete an endpoint and its queued events")
    .option("--yes", "skip the prompt")
    .action(async (id: string, flags: { yes?: boolean }) => {
      await agree(cli, `Delete ${id}? Its queued events are not sent.`, flags.yes);
      await cli.client.call("DELETE", at(id));
      cli.out.note(`${id} is deleted`);
    });
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
      else cli.out.line(`${delivered === true ? "taken" : "not taken"}: ${came} in ${String(duration)} ms`);
      if (delivered !== true) throw new CliFault(1, `the endpoint did not accept the event: ${came}`);
    });
}

function bodyOf(flags: EndpointFlags): Record<string, unknown> {
  return {
    ...(flags.events ? { events: flags.events } : {}),
    ...(flags.description === undefined ? {} : { description: flags.description }),
    ...(flags.format === undefined ? {} : { format: flags.format }),
  };
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

function show(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.fields(Object.entries(answer.json));
}
