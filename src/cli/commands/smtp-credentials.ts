// `svc smtp-credentials`: logins for the SMTP relay. The password is shown once, alone on stdout.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { field } from "../output.ts";
import { addVerbs, showStatus, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "make a login",
    route: "POST /v1/smtp_credentials",
    flags: [
      { flag: "--name <name>", about: "what it is for", member: "name", required: true },
      { flag: "--test", about: "a test login: nothing leaves the machine", member: "test" },
    ],
    show: showLogin,
  },
  {
    name: "list",
    about: "all logins",
    lists: "/v1/smtp_credentials",
    columns: ["id", "name", "username", "test", "status", "hint", "last_used_at"].map((name) => field(name)),
    empty: () => "There is no SMTP login.",
  },
  {
    name: "rotate",
    about: "a new password; the old one ends at once",
    route: "POST /v1/smtp_credentials/{id}/rotate",
    question: (id) => `Rotate ${id}? Its old password fails from now on.`,
    show: showLogin,
  },
  {
    name: "revoke",
    about: "end a login at once, for good",
    route: "POST /v1/smtp_credentials/{id}/revoke",
    question: (id) => `Revoke ${id}? Mail sent with it fails from now on.`,
    show: showStatus,
  },
];

export function register(credentials: Command, cli: Cli): void {
  addVerbs(credentials, cli, verbs);
}

function showLogin(cli: Cli, { json: { id, username, password } }: Answer): void {
  cli.out.note(`${String(id)}, login ${String(username)}. The password is shown this once:`);
  cli.out.secret(String(password));
}
