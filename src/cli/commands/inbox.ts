// `svc inbox`: mail of test keys and of `serve --dev`, which is kept here in place of being sent.
import type { Command } from "commander";
import { decodeWords } from "../../mail/encoded-word.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault } from "../fault.ts";
import { withExample } from "../help-example.ts";
import type { ShownMail } from "../mail-page.ts";
import { field, type Row } from "../output.ts";
import { addVerbs, type Verb } from "../verbs.ts";
import type { OpenFlags } from "./inbox-open.ts";

const shownHeaders = ["From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID"];

export const verbs: readonly Verb[] = [
  {
    name: "list",
    about: "list the mail, newest first",
    lists: "/v1/inbox",
    columns: [
      field("message_id", "message"),
      field("to"),
      field("subject"),
      field("caught_at", "caught"),
      field("from"),
      field("size_bytes", "size"),
    ],
    empty: () => "The inbox is empty.",
  },
  {
    name: "clear",
    about: "delete all mail of the inbox",
    route: "DELETE /v1/inbox",
    question: () => "Empty the inbox?",
    show: (cli, { json }) => cli.out.line(`cleared ${String(json["cleared"])}`),
  },
];

export function register(inbox: Command, cli: Cli): void {
  const content = (id: string): string => `/v1/messages/${segment(id)}/content`;
  addVerbs(inbox, cli, verbs);
  inbox
    .command("show <id>")
    .description("show the headers and text of a mail")
    .action(async (id: string) => {
      const answer = await inInbox(cli, cli.client.call("GET", content(id)));
      if (cli.out.json) return cli.out.body(answer.text);
      const { headers, text, html, attachments } = mailOf(answer);
      cli.out.fields(headers);
      cli.out.line("");
      cli.out.text(text ?? html ?? "");
      if (attachments.length > 0)
        cli.out.table(
          [field("filename", "attachment"), field("content_type", "type"), field("size_bytes", "size")],
          attachments,
        );
      cli.out.next(`The full source: ${cli.program} inbox raw ${id}`);
    });
  withExample(
    inbox
      .command("open <id>")
      .description(
        "write a mail to an HTML file and open it in the browser; no script runs, nothing is loaded",
      )
      .option("--to <file>", "the file (one in the folder for temporary files)")
      .option("--no-browser", "only write the file"),
    "inbox open msg_… --to mail.html --no-browser",
  ).action(async (id: string, flags: OpenFlags) => {
    const mail = mailOf(await inInbox(cli, cli.client.call("GET", content(id))));
    await (await import("./inbox-open.ts")).openMail(cli, id, mail, flags);
  });
  inbox
    .command("raw <id>")
    .description("print the source of a mail")
    .action(async (id: string) => {
      const raw = cli.client.call("GET", content(id), { accept: "message/rfc822" });
      const answer = await inInbox(cli, raw);
      cli.out.bytes(answer.bytes);
      await cli.out.drained();
    });
}

/** The API knows the mail as a message, whose list has more than the inbox. */
async function inInbox(cli: Cli, asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof CliFault) || error.exit !== 3) throw error;
    throw new CliFault(3, error.message, [`List the mail: ${cli.program} inbox list`], error.body);
  }
}

function mailOf({ json }: Answer): ShownMail {
  const { text, html } = json;
  const headers = rows(json["headers"]);
  return {
    headers: shownHeaders.flatMap((name) =>
      headers
        .filter((header) => String(header["name"]).toLowerCase() === name.toLowerCase())
        .map((header): [string, string] => [name, decodeWords(String(header["value"]))]),
    ),
    text: typeof text === "string" ? text : null,
    html: typeof html === "string" ? html : null,
    attachments: rows(json["attachments"]),
  };
}

function rows(value: unknown): Row[] {
  return Array.isArray(value) ? (value as Row[]) : [];
}
