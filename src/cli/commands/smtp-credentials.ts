// `svc smtp-credentials`: logins for SMTP submission. The password is shown once, alone on stdout.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import { rowsOf } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { snippets } from "../smtp-snippets.ts";
import { orList } from "../../word-list.ts";
import { cell } from "../text.ts";
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
  credentials
    .command("snippet [id]")
    .description("print the configuration of an SMTP client for a login")
    .requiredOption("--for <client>", orList(Object.keys(snippets)))
    .action(async (id: string | undefined, { for: client }: { for: string }) => {
      const snippet = snippets[client];
      if (!snippet) throw usage(`--for: found "${client}", expected ${orList(Object.keys(snippets))}`);
      const username = id === undefined ? "SMTP_USERNAME" : await usernameOf(cli, id);
      const { json } = await cli.client.call("GET", "/v1/status");
      cli.out.text(snippet({ host: String(json["hostname"]), port: submissionPort(json), username }));
      if (id === undefined)
        cli.out.next(
          `For a login: ${cli.program} smtp-credentials create --name NAME, then ${cli.program} smtp-credentials snippet ID --for ${client}`,
        );
    });
}

/** `id`: of the login, or its user name. */
async function usernameOf(cli: Cli, id: string): Promise<string> {
  const { json } = await cli.client.call("GET", "/v1/smtp_credentials", { query: { limit: "1000" } });
  const found = rowsOf(json).find((row) => row["id"] === id || row["username"] === id);
  if (found) return String(found["username"]);
  throw new CliFault(3, `there is no SMTP login ${id}`, [`List them: ${cli.program} smtp-credentials list`]);
}

/** The first port with STARTTLS. */
function submissionPort(status: Row): number {
  const listeners = Array.isArray(status["listeners"]) ? (status["listeners"] as Row[]) : [];
  const address = cell(listeners.find(({ name }) => name === "smtp")?.["address"]);
  return Number(/:(\d+)$/.exec(address)?.[1] ?? 587);
}

function showLogin(cli: Cli, { json: { id, username, password } }: Answer): void {
  cli.out.note(`${String(id)}, login ${String(username)}. The password is shown only once:`);
  cli.out.secret(String(password));
}
