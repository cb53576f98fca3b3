// `svc smtp-credentials`: logins for SMTP submission. The password is shown once, alone on stdout.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { field } from "../output.ts";
import { addVerbs, showStatus, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "create an SMTP login",
    route: "POST /v1/smtp_credentials",
    flags: [
      { flag: "--name <name>", about: "what it is for", member: "name", required: true },
      { flag: "--test", about: "create a test login, whose mail never leaves this machine", member: "test" },
    ],
    show: showLogin,
  },
  {
    name: "list",
    about: "list the SMTP logins",
    lists: "/v1/smtp_credentials",
    columns: ["id", "name", "username", "test", "status", "hint", "last_used_at"].map((name) => field(name)),
    empty: () => "No SMTP logins.",
  },
  {
    name: "rotate",
    about: "set a new password; the old one is refused at once",
    route: "POST /v1/smtp_credentials/{id}/rotate",
    question: (id) => `Rotate ${id}? Its old password fails from now on.`,
    show: showLogin,
  },
  {
    name: "revoke",
    about: "revoke a login at once and permanently",
    route: "POST /v1/smtp_credentials/{id}/revoke",
    question: (id) => `Revoke ${id}? Mail sent with it fails from now on.`,
    show: showStatus,
  },
];

export function register(credentials: Command, cli: Cli): void {
  addVerbs(credentials, cli, verbs);
}

function showLogin(cli: Cli, { json: { id, username, password } }: Answer): void {
  cli.out.note(`${String(id)}, login ${String(username)}. The password is shown only once:`);
  cli.out.secret(String(password));
}
