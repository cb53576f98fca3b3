// `svc smtp-credentials`: logins for SMTP submission. The password is shown once, alone on stdout.
import type { Command } from "commander";
import { agree } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field } from "../output.ts";

export function register(credentials: Command, cli: Cli): void {
  credentials
    .command("create")
    .description("create an SMTP login")
    .requiredOption("--name <name>", "what it is for")
    .option("--test", "create a test login, whose mail never leaves this machine")
    .action(async (flags: { name: string; test?: boolean }) => {
      const body = { name: flags.name, ...(flags.test ? { test: true } : {}) };
      showLogin(cli, await cli.client.call("POST", "/v1/smtp_credentials", { body }));
    });
  addListOptions(credentials.command("list").description("list the SMTP logins"), false).action(
    (flags: ListFlags) =>
      printList(cli, flags, {
        path: "/v1/smtp_credentials",
        columns: ["id", "name", "username", "test", "status", "hint", "last_used_at"].map((name) =>
          field(name),
        ),
        empty: "No SMTP logins.",
      }),
  );
  credentials
    .command("rotate <id>")
    .description("set a new password; the old one is refused at once")
    .option("--yes", "skip the prompt")
    .action(async (id: string, flags: { yes?: boolean }) => {
      await agree(cli, `Rotate ${id}? Its old password fails from now on.`, flags.yes);
      showLogin(cli, await cli.client.call("POST", `/v1/smtp_credentials/${segment(id)}/rotate`));
    });
  credentials
    .command("revoke <id>")
    .description("revoke a login at once and permanently")
    .option("--yes", "skip the prompt")
    .action(async (id: string, flags: { yes?: boolean }) => {
      await agree(cli, `Revoke ${id}? Mail sent with it fails from now on.`, flags.yes);
      const answer = await cli.client.call("POST", `/v1/smtp_credentials/${segment(id)}/revoke`);
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(`${id} is ${String(answer.json["status"])}`);
    });
}

function showLogin(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  const { id, username, password } = answer.json;
  cli.out.note(`${String(id)}, login ${String(username)}. The password is shown only once:`);
  cli.out.secret(String(password));
}
