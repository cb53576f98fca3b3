// `svc accounts`: several senders on one server, each with keys, domains, suppressions and limits of its own.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { accountLimitFlags, ratesText, shownLimits } from "../limits.ts";
import { field } from "../output.ts";
import { routeFlags } from "../route-flags.ts";
import { addVerbs, showDeleted, showStatus, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "create an account",
    example: "accounts create newsletter",
    route: "POST /v1/accounts",
    takes: ["name"],
    show(cli, answer, name) {
      showAccount(cli, answer);
      cli.out.next(`Its first key: ${cli.program} --account ${name} keys create --name NAME --scope send`);
    },
  },
  {
    name: "list",
    about: "list the accounts",
    lists: "/v1/accounts",
    columns: [
      ...["name", "id", "status", "paused_at", "daily_quota"].map((name) => field(name)),
      { title: "rates", of: (row) => ratesText(row["rates"]) },
      field("created_at"),
    ],
    empty: () => "No accounts.",
  },
  {
    name: "show",
    about: "show an account, by its name or id",
    route: "GET /v1/accounts/{account}",
    show: showAccount,
  },
  {
    name: "suspend",
    about: "refuse all its keys and logins; its queued mail is still delivered",
    route: "POST /v1/accounts/{account}/suspend",
    show: showStatus,
  },
  {
    name: "resume",
    about: "accept its keys and logins again, and end a pause of its sending: held mail is released",
    example: "accounts resume newsletter",
    route: "POST /v1/accounts/{account}/resume",
    show: showStatus,
  },
  {
    name: "delete",
    about: "delete a suspended account without unsent mail, with its keys, domains and webhooks",
    route: "DELETE /v1/accounts/{account}",
    irreversible: (account) =>
      `Delete the account ${account} with its keys, domains, webhooks and suppressions?`,
    show: showDeleted,
  },
  {
    name: "set",
    about: "change an account's limits",
    example: "accounts set newsletter --quota 50000 --rate messages-write=500/500",
    route: "PATCH /v1/accounts/{account}",
    flags: [...accountLimitFlags, ...routeFlags["PATCH /v1/accounts/{account}"]],
    show: showAccount,
  },
];

export function register(accounts: Command, cli: Cli): void {
  addVerbs(accounts, cli, verbs);
}

function showAccount(cli: Cli, answer: Answer): void {
  cli.out.fields(shownLimits(answer.json));
}
