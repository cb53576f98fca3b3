// `svc send`: sends one message through the API. Standard input is the text where neither --text nor
// --html is given.
import { basename } from "node:path";
import type { Command } from "commander";
import { finalStates } from "../../model/recipient.ts";
import { listed, readInputFile, readStandardInput, repeated, segment, type Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import type { Row } from "../output.ts";
import { cell } from "../text.ts";
import { moment, pause, spanMs } from "../times.ts";

interface SendFlags {
  from: string;
  to: string[];
  cc?: string[];
  bcc?: string[];
  replyTo?: string[];
  subject: string;
  text?: string;
  html?: string;
  attach?: string[];
  tag?: string[];
  at?: string;
  wait?: string | true;
}

const mostBytes = 26_214_400;
const pollMs = 500;
const final = new Set<string>(finalStates);

export function register(send: Command, cli: Cli): void {
  send
    .requiredOption("--from <address>", "a@x.example or 'Name <a@x.example>'; its domain must be verified")
    .requiredOption("--to <addresses>", "repeat or separate by commas", listed)
    .option("--cc <addresses>", "repeat or separate by commas", listed)
    .option("--bcc <addresses>", "repeat or separate by commas", listed)
    .option("--reply-to <addresses>", "repeat or separate by commas", listed)
    .requiredOption("--subject <text>", "the subject")
    .option("--text <text>", "the text body (standard input)")
    .option("--html <file>", "file with the HTML; - is standard input")
    .option("--attach <file>", "attach a file; repeat", repeated)
    .option("--tag <tags>", "repeat or separate by commas", listed)
    .option("--at <time>", "send later: a time, or a span such as 2h")
    .option("--wait [span]", "wait for the outcome, at most this long (1m); exit 1 unless delivered")
    .action(async (flags: SendFlags) => {
      const answer = await cli.client.call("POST", "/v1/messages", { body: await bodyOf(cli, flags) });
      const id = String(answer.json["id"]);
      if (flags.wait !== undefined)
        return settled(cli, id, spanMs(flags.wait === true ? "1m" : flags.wait, "--wait"));
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(id);
      cli.out.next(`Follow it: ${cli.program} messages show ${id}`);
    });
}

async function bodyOf(cli: Cli, flags: SendFlags): Promise<Row> {
  const given = (name: string, value: unknown): Row => (value === undefined ? {} : { [name]: value });
  const html = flags.html === undefined ? undefined : await htmlOf(cli, flags.html);
  const text = flags.text ?? (html === undefined ? await textOf(cli) : undefined);
  return {
    from: flags.from,
    to: flags.to,
    ...given("cc", flags.cc),
    ...given("bcc", flags.bcc),
    ...given("reply_to", flags.replyTo),
    subject: flags.subject,
    ...given("text", text),
    ...given("html", html),
    ...given("tags", flags.tag),
    ...given(
      "send_at",
      flags.at === undefined ? undefined : moment(flags.at, "--at", "future", cli.io.clock.now()),
    ),
    ...given(
      "attachments",
      flags.attach?.map((file) => ({
        filename: basename(file),
        content: readInputFile(file, "--attach").toString("base64"),
      })),
    ),
  };
}

async function textOf(cli: Cli): Promise<string> {
  if (cli.io.stdin.isTTY) throw usage("nothing to send: give --text or --html, or pipe the text in");
  return (await readStandardInput(cli.io, mostBytes)).toString();
}

async function htmlOf(cli: Cli, file: string): Promise<string> {
  return (
    file === "-" ? await readStandardInput(cli.io, mostBytes) : readInputFile(file, "--html")
  ).toString();
}

async function settled(cli: Cli, id: string, forMs: number): Promise<void> {
  const until = cli.io.clock.monotonic() + forMs;
  for (;;) {
    const answer = await cli.client.call("GET", `/v1/messages/${segment(id)}`);
    const recipients = Array.isArray(answer.json["recipients"]) ? (answer.json["recipients"] as Row[]) : [];
    const done = recipients.length > 0 && recipients.every((one) => final.has(String(one["status"])));
    if (!done && cli.io.clock.monotonic() + pollMs <= until) {
      await pause(cli.io.clock, pollMs);
      continue;
    }
    if (cli.out.json) cli.out.body(answer.text);
    else
      for (const { email, status, smtp_response: response } of recipients)
        cli.out.line([id, email, status, response].map(cell).join("  ").trimEnd());
    if (recipients.every((one) => one["status"] === "delivered")) return;
    const why = done ? "not every recipient was delivered" : "the outcome was not known within the wait";
    throw new CliFault(1, `${id}: ${why}`, [`See every attempt: ${cli.program} messages trace ${id}`]);
  }
}
