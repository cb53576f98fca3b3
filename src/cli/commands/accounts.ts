// `svc accounts`: several senders on one server, each with keys, domains, suppressions and limits of its own.
import type { Command } from "commander";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { addAccountLimitOptions, limitsOf, ratesText, shownLimits, type LimitFlags } from "../limits.ts";
import { field } from "../output.ts";
import { addVerbs, showDeleted, showStatus, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "make an account",
    route: "POST /v1/accounts",
    takes: ["name"],
    show(cli, answer, name) {
      showAccount(cli, answer);
      cli.out.next(`Its first key: ${cli.program} --account ${name} keys create --name NAME --scope send`);
    },
  },
  {
    name: "list",
    about: "all accounts",
    lists: "/v1/accounts",
    columns: [
      ...["name", "id", "status", "paused_at", "daily_quota"].map((name) => field(name)),
      { title: "rates", of: (row) => ratesText(row["rates"]) },
      field("created_at"),
    ],
    empty: () => "There is no account.",
  },
  {
    name: "show",
    about: "one account, by its name or id",
    route: "GET /v1/accounts/{account}",
    show: showAccount,
  },
  {
    name: "suspend",
    about: "refuse all its keys and logins; what it has queued goes on",
    route: "POST /v1/accounts/{account}/suspend",
    show: showStatus,
  },
  {
    name: "resume",
    about: "let its keys and logins work again, and end the pause of its sending: held mail follows",
    route: "POST /v1/accounts/{account}/resume",
    show: showStatus,
  },
  {
    name: "delete",
    about: "remove a suspended account that has nothing left to send, with its keys, domains and webhooks",
    route: "DELETE /v1/accounts/{account}",
    irreversible: (account) =>
      `Delete the account ${account} with its keys, domains, webhooks and suppressions?`,
    show: showDeleted,
  },
];

export function register(accounts: Command, cli: Cli): void {
  addVerbs(accounts, cli, verbs);
  addAccountLimitOptions(
    accounts.command("set <account>").description("raise or lower what an account may do"),
  ).action(async (account: string, flags: LimitFlags) => {
    const body = limitsOf("account", flags, ["--rate", "--quota", "--limit"]);
    const answer = await cli.client.call("PATCH", pathOf(account), { body });
    if (cli.out.json) cli.out.body(answer.text);
    else showAccount(cli, answer);
  });
}

const pathOf = (account: string): string => `/v1/accounts/${segment(account)}`;

function showAccount(cli: Cli, answer: Answer): void {
  cli.out.fields(shownLimits(answer.json));
}
