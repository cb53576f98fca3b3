// `svc messages`: messages, their recipients and each attempt with the replies of the receiving server.
import type { Command } from "commander";
import { messageTokenForm } from "../../mail/message-token.ts";
import { listed, segment, type Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { addFilters, filtersOf, type FilterFlags } from "../filters.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { withExample } from "../help-example.ts";
import { field, type Row } from "../output.ts";
import { explainWait, explainWaitOf } from "../message-wait.ts";
import { cell } from "../text.ts";
import { moment } from "../times.ts";

interface Filters extends ListFlags, FilterFlags {
  status?: string;
  subject?: string;
  source?: string;
}

const exact = { to: "to", from: "from", domain: "to_domain", tag: "tag", pool: "ip_pool" };

export function register(messages: Command, cli: Cli): void {
  const at = (id: string): string => `/v1/messages/${segment(id)}`;
  addFilters(addListOptions(messages.command("list").description("list the messages, newest first"), true))
    .option("--status <status>", "delivered, deferred, bounced, processing, …")
    .option("--subject <text>", "subject contains this text")
    .option("--source <source>", "api or smtp")
    .action((flags: Filters) =>
      printList(cli, flags, {
        path: "/v1/messages",
        query: {
          ...filtersOf(cli, flags, exact),
          status: flags.status,
          subject: flags.subject,
          source: flags.source,
        },
        times: { since: "created_after", until: "created_before" },
        columns: [
          field("id"),
          field("status"),
          { title: "to", of: (row) => recipientsOf(row).map((one) => one["email"]) },
          field("subject"),
          field("created_at", "created"),
          field("from"),
        ],
        empty: "No messages.",
      }),
    );
  messages
    .command("show <id>")
    .description("show a message and its recipients")
    .action(async (id: string) => {
      const answer = await cli.client.call("GET", at(id));
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.fields(Object.entries(answer.json).filter(([name]) => name !== "recipients"));
      cli.out.line("");
      cli.out.table(
        [
          "email",
          "type",
          "status",
          "attempts",
          "smtp_code",
          "next_attempt_at",
          "receiving_mta",
          "smtp_response",
        ].map((name) => field(name)),
        recipientsOf(answer.json),
      );
      await explainWait(cli, answer.json);
      cli.out.next(`Every attempt with its replies: ${cli.program} messages trace ${id}`);
    });
  messages
    .command("trace <id>")
    .description(
      "show each delivery attempt with the SMTP dialogue, by our id, Message-ID or the receiver's queue id",
    )
    .option(
      "--since <time>",
      "look no further back for a Message-ID or queue id: a time, or a span such as 24h",
    )
    .action(async (known: string, flags: { since?: string }) => {
      const id = await idOf(cli, known, flags.since);
      const answer = await cli.client.call("GET", `${at(id)}/attempts`);
      if (cli.out.json) return cli.out.body(answer.text);
      const attempts = rowsOf(answer.json);
      if (attempts.length === 0) cli.out.note("No attempt yet.");
      for (const attempt of attempts) showAttempt(cli, attempt);
      await explainWaitOf(cli, id);
    });
  messages
    .command("raw <id>")
    .description("print the source of a message as it was accepted")
    .action(async (id: string) => {
      const answer = await cli.client.call("GET", `${at(id)}/content`, { accept: "message/rfc822" });
      cli.out.bytes(answer.bytes);
      await cli.out.drained();
    });
  messages
    .command("cancel <id>")
    .description("cancel the scheduled and queued recipients of a message")
    .action(async (id: string) => {
      const answer = await cli.client.call("POST", `${at(id)}/cancel`);
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(`${id} is ${String(answer.json["status"])}`);
    });
  withExample(
    messages
      .command("resend <id>")
      .description("send a message again, from its stored content, as a new message with ids of its own")
      .option("--to <addresses>", "these of its recipients (all); repeat or separate by commas", listed)
      .option(
        "--idempotency-key <key>",
        "the same command with the same key within a day sends nothing again",
      ),
    "messages resend msg_… --to someone@example.net",
  ).action(async (id: string, { idempotencyKey, ...body }: { to?: string[]; idempotencyKey?: string }) => {
    if (idempotencyKey !== undefined && !/^[\x20-\x7e]{1,255}$/.test(idempotencyKey))
      throw usage(
        `--idempotency-key: found ${JSON.stringify(idempotencyKey)}, expected 1 to 255 printable ASCII characters`,
      );
    const answer = await cli.client.call("POST", `${at(id)}/resend`, { body, idempotencyKey });
    if (cli.out.json) return cli.out.body(answer.text);
    const made = String(answer.json["id"]);
    cli.out.line(made);
    cli.out.next(`What becomes of it: ${cli.program} messages trace ${made}`);
  });
}

/** The id of the message that is known by this. Throws CliFault 3 where there is none. */
async function idOf(cli: Cli, known: string, since: string | undefined): Promise<string> {
  if (known.startsWith("msg_")) return known;
  const token = messageTokenForm.exec(known)?.[0];
  const header = known.startsWith("<") ? known : `<${known}>`;
  if (token !== undefined) {
    const id = `msg_${token.slice(0, 26).toLowerCase()}`;
    const { json } = await cli.client.call("GET", `/v1/messages/${id}`);
    if (json["message_id_header"] === header) return id;
  }
  const query: Record<string, string> = {
    ...(known.includes("@") ? { message_id_header: header } : { remote_id: known }),
    ...(since === undefined ? {} : { created_after: moment(since, "--since", "past", cli.io.clock.now()) }),
    limit: "1",
  };
  for (;;) {
    const { json } = await cli.client.call("GET", "/v1/messages", { query });
    const id = rowsOf(json)[0]?.["id"];
    if (typeof id === "string") return id;
    const { next_cursor: next } = json;
    if (typeof next !== "string") throw new CliFault(3, `no message has the Message-ID or queue id ${known}`);
    query["cursor"] = next;
  }
}

function recipientsOf(message: Row): Row[] {
  const recipients = message["recipients"];
  return Array.isArray(recipients) ? (recipients as Row[]) : [];
}

function shownTls(tls: unknown): string {
  if (tls === null || typeof tls !== "object") return "in clear";
  const { version, policy } = tls as Row;
  const session = typeof version === "string" ? version : "no TLS";
  return typeof policy === "string" && policy !== "none" ? `${session}, policy ${policy}` : session;
}

function showAttempt(cli: Cli, attempt: Row): void {
  const road = [attempt["host"], attempt["address"]].filter((part) => typeof part === "string").join(" ");
  const tls = shownTls(attempt["tls"]);
  cli.out.line(
    `${cell(attempt["started_at"])}  ${cell(attempt["recipient"])}  attempt ${cell(attempt["attempt"])}: ${cell(attempt["outcome"])}` +
      (road === "" && tls === "in clear" ? "" : `  ${[road, tls].filter((part) => part !== "").join(", ")}`),
  );
  const dialogue = Array.isArray(attempt["dialogue"]) ? (attempt["dialogue"] as Row[]) : [];
  for (const { at_ms: ms, from, text } of dialogue)
    cli.out.line(`  ${String(ms).padStart(6)} ms  ${from === "us" ? ">" : "<"} ${String(text)}`);
  if (dialogue.length === 0) cli.out.line(`  ${cell(attempt["smtp_response"])}`);
  if (attempt["ambiguous"] === true)
    cli.out.line(
      attempt["outcome"] === "interrupted"
        ? "  The server ended during this attempt: the receiver may have a copy."
        : "  The reply to the final dot was lost: the receiver may have a copy.",
    );
  if (typeof attempt["next_attempt_at"] === "string")
    cli.out.line(`  next attempt ${cell(attempt["next_attempt_at"])}`);
}
