// `svc accounts`: several senders on one server, each with keys, domains, suppressions and limits of its own.
import type { Command } from "commander";
import { agreeByName } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { addAccountLimitOptions, limitsOf, ratesText, shownLimits, type LimitFlags } from "../limits.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field } from "../output.ts";

export function register(accounts: Command, cli: Cli): void {
  accounts
    .command("create <name>")
    .description("create an account")
    .action(async (name: string) => {
      const answer = await cli.client.call("POST", "/v1/accounts", { body: { name } });
      show(cli, answer);
      cli.out.next(`Its first key: ${cli.program} --account ${name} keys create --name NAME --scope send`);
    });
  addListOptions(accounts.command("list").description("all accounts"), false).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/accounts",
      columns: [
        ...["name", "id", "status", "paused_at", "daily_quota"].map((name) => field(name)),
        { title: "rates", of: (row) => ratesText(row["rates"]) },
        field("created_at"),
      ],
      empty: "No accounts.",
    }),
  );
  accounts
    .command("show <account>")
    .description("show an account, by its name or id")
    .action(async (account: string) => show(cli, await cli.client.call("GET", pathOf(account))));
  addAccountLimitOptions(accounts.command("set <account>").description("change an account's limits")).action(
    async (account: string, flags: LimitFlags) => {
      const body = limitsOf("account", flags, ["--rate", "--quota", "--limit"]);
      show(cli, await cli.client.call("PATCH", pathOf(account), { body }));
    },
  );
  for (const verb of ["suspend", "resume"] as const)
    accounts
      .command(`${verb} <account>`)
      .description(
        verb === "suspend"
          ? "refuse all its keys and logins; its queued mail is still delivered"
          : "accept its keys and logins again, and end a pause of its sending: held mail is released",
      )
      .action(async (account: string) => {
        const answer = await cli.client.call("POST", `${pathOf(account)}/${verb}`);
        if (cli.out.json) return cli.out.body(answer.text);
        cli.out.line(`${account} is ${String(answer.json["status"])}`);
      });
  accounts
    .command("delete <account>")
    .description("delete a suspended account without unsent mail, with its keys, domains and webhooks")
    .option("--confirm <account>", "delete without a prompt")
    .action(async (account: string, flags: { confirm?: string }) => {
      const question = `Delete the account ${account} with its keys, domains, webhooks and suppressions?`;
      await agreeByName(cli, question, account, flags.confirm);
      await cli.client.call("DELETE", pathOf(account));
      cli.out.note(`${account} is deleted`);
    });
}

const pathOf = (account: string): string => `/v1/accounts/${segment(account)}`;

function show(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.fields(shownLimits(answer.json));
}
