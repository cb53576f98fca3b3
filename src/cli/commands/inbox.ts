// `svc inbox`: mail of test keys and of `serve --dev`, which is kept here in place of being sent.
import type { Command } from "commander";
import { agree } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";

const shownHeaders = ["From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID"];

export function register(inbox: Command, cli: Cli): void {
  const content = (id: string): string => `/v1/messages/${segment(id)}/content`;
  addListOptions(inbox.command("list").description("list the mail, newest first"), false).action(
    (flags: ListFlags) =>
      printList(cli, flags, {
        path: "/v1/inbox",
        columns: [
          field("message_id", "message"),
          field("to"),
          field("subject"),
          field("caught_at", "caught"),
          field("from"),
          field("size_bytes", "size"),
        ],
        empty: "The inbox is empty.",
      }),
  );
  inbox
    .command("show <id>")
    .description("show the headers and text of a mail")
    .action(async (id: string) => {
      const answer = await cli.client.call("GET", content(id));
      if (cli.out.json) return cli.out.body(answer.text);
      const { text, html } = answer.json;
      const headers = rows(answer.json["headers"]);
      cli.out.fields(
        shownHeaders.flatMap((name) =>
          headers
            .filter((header) => String(header["name"]).toLowerCase() === name.toLowerCase())
            .map((header): [string, unknown] => [name, header["value"]]),
        ),
      );
      cli.out.line("");
      cli.out.text(typeof text === "string" ? text : typeof html === "string" ? html : "");
      const attachments = rows(answer.json["attachments"]);
      if (attachments.length > 0)
        cli.out.table(
          [field("filename", "attachment"), field("content_type", "type"), field("size_bytes", "size")],
          attachments,
        );
      cli.out.next(`The full source: ${cli.program} inbox raw ${id}`);
    });
  inbox
    .command("raw <id>")
    .description("print the source of a mail")
    .action(async (id: string) => {
      const answer = await cli.client.call("GET", content(id), { accept: "message/rfc822" });
      cli.out.bytes(answer.bytes);
      await cli.out.drained();
    });
  inbox
    .command("clear")
    .description("delete all mail of the inbox")
    .option("--yes", "skip the prompt")
    .action(async (flags: { yes?: boolean }) => {
      await agree(cli, "Empty the inbox?", flags.yes);
      const answer = await cli.client.call("DELETE", "/v1/inbox");
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(`cleared ${String(answer.json["cleared"])}`);
    });
}

function rows(value: unknown): Row[] {
  return Array.isArray(value) ? (value as Row[]) : [];
}
