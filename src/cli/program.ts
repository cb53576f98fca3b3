// The nouns of the command line, grouped by purpose, and the parser that is built from them. Only the commands of the
// requested noun are loaded. Over 300 lines: the list of the nouns.
import { Command, CommanderError } from "commander";
import type { Cli, Register } from "./cli.ts";
import { namesOf, registerHelp, unknownCommand } from "./commands/help.ts";
import { neutralised } from "./text.ts";

export interface Noun {
  name: string;
  alias?: string;
  about: string;
  load: () => Promise<{ register: Register }>;
}

/** The groups of nouns, in the order of the help. */
const groups: { heading: string; nouns: Noun[] }[] = [
  {
    heading: "Set up and run the server:",
    nouns: [
      {
        name: "init",
        about: "set up configuration, database, first key and DNS records",
        load: () => import("./commands/init.ts"),
      },
      {
        name: "serve",
        about: "run the service; --dev to try it out",
        load: () => import("./commands/serve.ts"),
      },
      {
        name: "doctor",
        about: "check the server and what is around it; exit 7 if a check fails",
        load: () => import("./commands/doctor.ts"),
      },
      { name: "status", about: "show the state of the service", load: () => import("./commands/status.ts") },
      {
        name: "top",
        about: "watch what the service does: rates, providers, addresses, webhooks, queue",
        load: () => import("./commands/top.ts"),
      },
      {
        name: "healthcheck",
        about: "exit 0 while the service is alive, or ready for mail",
        load: () => import("./commands/healthcheck.ts"),
      },
      {
        name: "logs",
        about: "show the last lines of the log, and follow it",
        load: () => import("./commands/logs.ts"),
      },
      {
        name: "reload",
        about: "read certificates and the shaping file again; no connection is dropped",
        load: () => import("./commands/reload.ts"),
      },
      {
        name: "cert",
        alias: "certs",
        about: "certificates of the listeners: show, renew, install",
        load: () => import("./commands/cert.ts"),
      },
      {
        name: "maintenance",
        about: "maintenance mode, which refuses clients: on, off",
        load: () => import("./commands/maintenance.ts"),
      },
      {
        name: "drain",
        about: "refuse new mail and wait until all that is due was sent",
        load: () => import("./commands/drain.ts"),
      },
      {
        name: "backup",
        about: "back up the database, mail, keys and configuration while the service runs",
        load: () => import("./commands/backup.ts"),
      },
      {
        name: "restore",
        about: "put a backup in the place of the data directory of a stopped service",
        load: () => import("./commands/restore.ts"),
      },
      {
        name: "db",
        about: "check: the database and the files of content; exit 7 if something is damaged",
        load: () => import("./commands/db.ts"),
      },
      {
        name: "prune",
        about: "delete expired data now and return free space; --dry-run counts it",
        load: () => import("./commands/prune.ts"),
      },
      {
        name: "migrate",
        about: "bring the database of a stopped service to this version, after a copy of it",
        load: () => import("./commands/migrate.ts"),
      },
      {
        name: "config",
        about: "svc.yaml: show, get, set, unset, check, schema, systemd-unit",
        load: () => import("./commands/config.ts"),
      },
      { name: "audit", about: "audit log: list, tail, export", load: () => import("./commands/audit.ts") },
    ],
  },
  {
    heading: "Send mail and follow it:",
    nouns: [
      { name: "send", about: "send a message", load: () => import("./commands/send.ts") },
      {
        name: "messages",
        alias: "message",
        about: "list, show, trace, raw, cancel, resend",
        load: () => import("./commands/messages.ts"),
      },
      {
        name: "queue",
        about: "list, count, retry, hold, release, fail, delete, pause, resume, pauses",
        load: () => import("./commands/queue.ts"),
      },
      {
        name: "probe",
        about: "try the road to a mailbox, up to the reply to RCPT",
        load: () => import("./commands/probe.ts"),
      },
      {
        name: "events",
        alias: "event",
        about: "list, show, tail",
        load: () => import("./commands/events.ts"),
      },
      {
        name: "stats",
        about: "statistics: summary, timeseries, tags, domains, providers, bounces, webhooks, …",
        load: () => import("./commands/stats.ts"),
      },
      {
        name: "bounces",
        alias: "bounce",
        about: "explain an SMTP reply or a bounce message",
        load: () => import("./commands/bounces.ts"),
      },
      {
        name: "inbox",
        about: "local inbox of test mail: list, show, open, raw, clear",
        load: () => import("./commands/inbox.ts"),
      },
    ],
  },
  {
    heading: "Manage senders:",
    nouns: [
      {
        name: "domains",
        alias: "domain",
        about: "sender domains: add, records, publish, verify, DKIM keys, tracking, suspend, delete, …",
        load: () => import("./commands/domains.ts"),
      },
      {
        name: "keys",
        alias: "key",
        about: "API keys: create, list, show, set, rotate, revoke, disable, enable",
        load: () => import("./commands/keys.ts"),
      },
      {
        name: "smtp-credentials",
        alias: "smtp-credential",
        about: "SMTP logins: create, list, rotate, revoke, snippet",
        load: () => import("./commands/smtp-credentials.ts"),
      },
      {
        name: "lockouts",
        alias: "lockout",
        about: "source addresses locked out after failed logins: list, clear",
        load: () => import("./commands/lockouts.ts"),
      },
      {
        name: "accounts",
        alias: "account",
        about: "create, list, show, set, suspend, resume, delete",
        load: () => import("./commands/accounts.ts"),
      },
    ],
  },
  {
    heading: "Manage recipients:",
    nouns: [
      {
        name: "suppressions",
        alias: "suppression",
        about: "suppression list: add, remove, show, list, count, import, export",
        load: () => import("./commands/suppressions.ts"),
      },
      {
        name: "recipients",
        alias: "recipient",
        about: "forget: delete the data kept about one address",
        load: () => import("./commands/recipients.ts"),
      },
    ],
  },
  {
    heading: "Post events to your programs:",
    nouns: [
      {
        name: "webhooks",
        alias: "webhook",
        about: "endpoints: create, list, pause, rotate, test, listen, verify, deliveries, replay, …",
        load: () => import("./commands/webhooks.ts"),
      },
    ],
  },
  {
    heading: "Manage sending addresses:",
    nouns: [
      {
        name: "pools",
        alias: "pool",
        about: "IP pools: create, list, show, update, delete",
        load: () => import("./commands/pools.ts"),
      },
      {
        name: "ips",
        alias: "ip",
        about: "sending IP addresses: list, add, move, pause, resume, remove, assign, unassign, …",
        load: () => import("./commands/ips.ts"),
      },
      {
        name: "blacklists",
        alias: "blacklist",
        about: "DNS blocklists: check, list, zones list, zones add, zones remove, zones test",
        load: () => import("./commands/blacklists.ts"),
      },
      {
        name: "limits",
        alias: "limit",
        about: "limits of providers and domains while the server runs: list, show, set, unset",
        load: () => import("./commands/limits.ts"),
      },
    ],
  },
  {
    heading: "Learn more:",
    nouns: [
      {
        name: "completion",
        about: "print the completion script of a shell: bash, zsh, fish",
        load: async () => {
          const { registerCompletion } = await import("./commands/completion.ts");
          return { register: (completion, cli) => registerCompletion(completion, cli, () => nouns) };
        },
      },
    ],
  },
];

export const nouns: Noun[] = groups.flatMap((group) => group.nouns);

type Complete = (globals: Record<string, unknown>) => void;

/** Resolves with the exit code of a command line; throws what a command throws. */
export async function runProgram(args: string[], cli: Cli, complete: Complete): Promise<number> {
  try {
    const program = await build(args, cli, complete);
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
}

const plain = new Set(["--json", "-h", "--help", "-V", "--version"]);
const valued = ["--account", "--socket", "--url", "--api-key-file", "--as"];

async function build(args: string[], cli: Cli, complete: Complete): Promise<Command> {
  const { io } = cli;
  const program = new Command("svc")
    .description("A self-hostable email delivery appliance.")
    .version(cli.version, "-V, --version", "print the version")
    .option("--json", "print the API's own bodies")
    .option("--account <name>", "act on this account (SVC_ACCOUNT)")
    .option("--socket <path>", "the admin socket (SVC_SOCKET)")
    .option("--url <url>", "call a remote server over HTTPS, with --api-key-file")
    .option("--api-key-file <file>", "file with an API key")
    .option("--as <name>", "your name for the audit log (SVC_OPERATOR)")
    .exitOverride()
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, helpWidth: io.stdout.columns, minWidthToWrap: 20 })
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) =>
        write(
          neutralised(text.trimEnd())
            .replaceAll("\\n", "\n")
            .replace(/^error: /, "svc: ") + "\n",
        ),
    })
    .showHelpAfterError("(add --help for usage)")
    .hook("preAction", (top) => complete(top.opts()));

  const [first, second] = commandsIn(args);
  const asked = first === "help" ? second : first;
  let found: Command | null = null;
  for (const { heading, noun } of groups.flatMap((group) =>
    group.nouns.map((noun) => ({ heading: group.heading, noun })),
  )) {
    const command = program.command(noun.name).description(noun.about).helpGroup(heading);
    command.helpCommand(false);
    if (noun.alias !== undefined) command.alias(noun.alias);
    if (noun.name !== asked && noun.alias !== asked) continue;
    (await noun.load()).register(command, cli);
    found = command;
  }
  registerHelp(program, cli, () => nouns);
  // Before the line is parsed: --help after an unknown command would show the help of the command before it.
  if (first !== undefined && first !== "help") refuseUnknown(cli, program, found, first, second);
  return program;
}

/** Throws usage where a noun, or the verb of a noun that has verbs, is none. */
function refuseUnknown(
  cli: Cli,
  program: Command,
  noun: Command | null,
  first: string,
  second: string | undefined,
): void {
  if (noun === null) throw unknownCommand(cli, first, program, "help");
  if (second === undefined || noun.commands.length === 0) return;
  if (!namesOf(noun).includes(second)) throw unknownCommand(cli, second, noun, `help ${noun.name()}`);
}

/** The first two words of a command line, as far as only options of the program stand before and between them. */
function commandsIn(args: string[]): string[] {
  const words: string[] = [];
  for (let i = 0; i < args.length && words.length < 2; i++) {
    const word = args[i] ?? "";
    if (valued.includes(word)) i++;
    else if (!word.startsWith("-")) words.push(word);
    else if (!plain.has(word) && !valued.includes(word.split("=")[0] ?? "")) break;
  }
  return words;
}
