// `svc events`: the events, as a list and live.
import type { Command } from "commander";
import { eventOrders } from "../../model/event.ts";
import { deliveryStatuses } from "../../model/webhook-delivery.ts";
import { orList } from "../../word-list.ts";
import { listed, segment, type Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { addFilters, filtersOf, type FilterFlags } from "../filters.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";

interface Filters extends ListFlags, FilterFlags {
  event?: string[];
  message?: string;
  webhook?: string;
  deliveryStatus?: string;
  order: string;
}

const exact = { to: "to", tag: "tag", ip: "ip_address" };

export function register(events: Command, cli: Cli): void {
  addFilters(addListOptions(events.command("list").description("list the events, newest first"), true))
    .option("--event <types>", "of these types; repeat or separate by commas", listed)
    .option("--message <id>", "of this message")
    .option("--webhook <id>", "for this endpoint")
    .option("--delivery-status <status>", orList([...deliveryStatuses, "none"]))
    .option("--order <order>", orList(eventOrders), "desc")
    .action((flags: Filters) =>
      printList(cli, flags, {
        path: "/v1/events",
        query: {
          event: flags.event?.join(","),
          message_id: flags.message,
          ...filtersOf(cli, flags, exact),
          webhook_id: flags.webhook,
          delivery_status: flags.deliveryStatus,
          order: flags.order,
        },
        times: { since: "occurred_after", until: "occurred_before" },
        columns: [
          field("occurred_at", "occurred"),
          field("event"),
          { title: "to", of: (row) => dataOf(row)["to"] },
          { title: "message", of: (row) => dataOf(row)["message_id"] },
          { title: "what", of: what },
          field("event_id", "id"),
        ],
        empty: "No events.",
      }),
    );
  events
    .command("show <id>")
    .description("show an event")
    .action(async (id: string) => {
      const answer = await cli.client.call("GET", "/v1/events", { query: { event_id: id } });
      const row = rowsOf(answer.json)[0];
      if (!row) throw new CliFault(3, `event ${id} was not found`, ["Events are kept for 30 days."]);
      if (cli.out.json) return cli.out.body(JSON.stringify(row));
      cli.out.fields([
        ...Object.entries(row).filter(([name]) => name !== "data"),
        ...Object.entries(dataOf(row)),
      ]);
    });
  events
    .command("tail")
    .description("print events as they occur, until Ctrl-C")
    .option("--after <evt_…>", "start after this event")
    .option("--event <types>", "of these types; repeat or separate by commas", listed)
    .action((flags: { after?: string; event?: string[] }) => tail(cli, flags));
}

async function tail(cli: Cli, flags: { after?: string; event?: string[] }): Promise<void> {
  let last = flags.after;
  const resume = (): string[] => [
    `To continue: ${cli.program} events tail${last === undefined ? "" : ` --after ${segment(last)}`}`,
  ];
  try {
    for await (const line of cli.client.lines("/v1/events/tail", {
      after: flags.after,
      event: flags.event?.join(","),
    })) {
      const event = parsed(line);
      if (typeof event["event_id"] === "string") last = event["event_id"];
      if (cli.out.json) cli.out.body(line);
      else {
        const columns = [
          event["occurred_at"],
          event["event"],
          dataOf(event)["message_id"],
          dataOf(event)["to"],
          what(event),
        ];
        cli.out.line(columns.map(cell).join("  ").trimEnd());
      }
      await cli.out.drained();
    }
  } catch (error) {
    if (error instanceof CliFault && error.exit === 6 && last !== undefined)
      throw new CliFault(6, error.message, resume());
    throw error;
  }
  throw new CliFault(6, "the daemon ended the stream", resume());
}

function parsed(line: string): Row {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === "object" ? (value as Row) : {};
  } catch {
    return {};
  }
}

function dataOf(event: Row): Row {
  const data = event["data"];
  return data !== null && typeof data === "object" ? (data as Row) : {};
}

/** What a person wants to see first of an event. */
function what(event: Row): string {
  const {
    smtp_code: code,
    smtp_status: status,
    smtp_response: response,
    bounce_classification: cause,
    url,
  } = dataOf(event);
  const reply = typeof response === "string" ? response : [code, status].map(cell).join(" ").trim();
  return [cause, reply, url]
    .map(cell)
    .filter((part) => part !== "")
    .join(": ");
}
