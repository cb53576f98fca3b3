// The command line's front door: finds the noun, loads its commands and nothing else, runs
// them, and turns what went wrong into words and an exit code. The nouns are this one list.
import { Command, CommanderError } from "commander";
import { createClient, type Client, type Target } from "./client.ts";
import { readInputFile, type Cli, type Globals, type Register } from "./cli.ts";
import type { DaemonModule } from "./daemon-contract.ts";
import { configuredSocket, socketCandidates } from "./daemon-address.ts";
import { CliFault, usage } from "./fault.ts";
import { endOnBrokenPipe, processIo, type Io } from "./io.ts";
import { createOutput } from "./output.ts";
import { neutralised } from "./text.ts";

declare const __VERSION__: string;

interface Noun {
  name: string;
  alias?: string;
  about: string;
  load: () => Promise<{ register: Register }>;
}

const nouns: Noun[] = [
  {
    name: "init",
    about: "set up: configuration, database, first key, records to publish",
    load: () => import("./commands/init.ts"),
  },
  { name: "serve", about: "run the service; --dev to try it out", load: () => import("./commands/serve.ts") },
  { name: "status", about: "how the service does", load: () => import("./commands/status.ts") },
  { name: "send", about: "send a message", load: () => import("./commands/send.ts") },
  {
    name: "messages",
    alias: "message",
    about: "list, show, trace, raw, cancel",
    load: () => import("./commands/messages.ts"),
  },
  { name: "events", alias: "event", about: "list, show, tail", load: () => import("./commands/events.ts") },
  {
    name: "inbox",
    about: "mail caught on this machine: list, show, raw, clear",
    load: () => import("./commands/inbox.ts"),
  },
  {
    name: "domains",
    alias: "domain",
    about: "sender domains: add, records, verify, list, show, delete",
    load: () => import("./commands/domains.ts"),
  },
  {
    name: "keys",
    alias: "key",
    about: "API keys: create, list, show, rotate, revoke, disable, enable",
    load: () => import("./commands/keys.ts"),
  },
  {
    name: "smtp-credentials",
    alias: "smtp-credential",
    about: "SMTP logins: create, list, rotate, revoke",
    load: () => import("./commands/smtp-credentials.ts"),
  },
  {
    name: "webhooks",
    alias: "webhook",
    about: "endpoints: create, list, show, update, delete, pause, resume, test",
    load: () => import("./commands/webhooks.ts"),
  },
  {
    name: "suppressions",
    alias: "suppression",
    about: "addresses not to send to: add, remove, show, list",
    load: () => import("./commands/suppressions.ts"),
  },
];

/** Runs the process's command line; resolves with the exit code. */
export async function main(argv: string[], loadDaemon: () => Promise<DaemonModule>): Promise<number> {
  endOnBrokenPipe();
  return run(argv.slice(2), processIo(), loadDaemon);
}

/** Runs `args` in the world of `io`. */
export async function run(args: string[], io: Io, loadDaemon: () => Promise<DaemonModule>): Promise<number> {
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
    io.stdout.write(`${__VERSION__}\n`);
    return 0;
  }
  let json = false;
  const context = createContext(io, loadDaemon);
  try {
    const program = await build(args, io, context);
    json = args.includes("--json");
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return explain(error, io, json);
  }
}

const valued = ["--account", "--socket", "--url", "--api-key-file", "--as"];

async function build(args: string[], io: Io, context: Context): Promise<Command> {
  const program = new Command("svc")
    .description("A self-hostable email delivery appliance.")
    .version(__VERSION__, "-V, --version", "print the version")
    .option("--json", "print the API's own bodies")
    .option("--account <name>", "the account (SVC_ACCOUNT)")
    .option("--socket <path>", "the admin socket (SVC_SOCKET)")
    .option("--url <url>", "reach a server elsewhere over HTTPS, with --api-key-file")
    .option("--api-key-file <file>", "file that holds an API key")
    .option("--as <name>", "your name for the audit log (SVC_OPERATOR)")
    .exitOverride()
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, helpWidth: io.stdout.columns })
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
    .showHelpAfterError("(add --help to see what there is)")
    .hook("preAction", (top) => context.complete(top.opts()));

  const wanted = wordsOf(args);
  const asked = wanted[0] === "help" ? wanted[1] : wanted[0];
  for (const noun of nouns) {
    const command = program.command(noun.name).description(noun.about);
    if (noun.alias !== undefined) command.alias(noun.alias);
    if (noun.name === asked || noun.alias === asked) (await noun.load()).register(command, context.cli);
  }
  const { registerHelp } = await import("./commands/help.ts");
  registerHelp(program, context.cli);
  return program;
}

/** The words of a command line without the options that stand before them. */
function wordsOf(args: string[]): string[] {
  return args.filter((word, i) => !word.startsWith("-") && !valued.includes(args[i - 1] ?? ""));
}

interface Context {
  cli: Cli;
  complete(options: Record<string, unknown>): void;
}

/** Globals are known only once the line is parsed; client and output are made at their first use. */
function createContext(io: Io, loadDaemon: () => Promise<DaemonModule>): Context {
  let globals: Globals = {
    json: false,
    account: undefined,
    socket: undefined,
    url: undefined,
    apiKeyFile: undefined,
    as: undefined,
  };
  let client: Client | null = null;
  let out = createOutput(io, false);
  const program = programName(io.env);
  const cli: Cli = {
    io,
    program,
    version: __VERSION__,
    loadDaemon,
    get globals() {
      return globals;
    },
    get out() {
      return out;
    },
    get client() {
      client ??= createClient(targetOf(globals, io, program));
      return client;
    },
  };
  return {
    cli,
    complete(options) {
      const text = (name: string): string | undefined =>
        typeof options[name] === "string" ? options[name] : undefined;
      globals = {
        json: options["json"] === true,
        account: text("account") ?? io.env["SVC_ACCOUNT"],
        socket: text("socket"),
        url: text("url"),
        apiKeyFile: text("apiKeyFile"),
        as: text("as"),
      };
      out = createOutput(io, globals.json);
    },
  };
}

function targetOf(globals: Globals, io: Io, program: string): Target {
  const { account = null } = globals;
  if (account !== null && !/^[a-z0-9][a-z0-9_-]{0,63}$/.test(account))
    throw usage(`--account: found "${account}", expected the name of an account, such as default`);
  const operator =
    globals.as ?? io.env["SVC_OPERATOR"] ?? io.env["SUDO_USER"] ?? io.env["USER"] ?? `uid ${io.uid}`;
  const more =
    globals.socket === undefined && !io.env["SVC_SOCKET"] ? () => configuredSocket(io) : async () => null;
  const way =
    globals.url === undefined ? { sockets: socketCandidates(globals.socket, io), more } : remote(globals);
  return { way, account, operator, program };
}

function remote(globals: Globals): { url: URL; apiKey: string } {
  const { url = "", apiKeyFile } = globals;
  if (!URL.canParse(url) || new URL(url).protocol !== "https:")
    throw usage(`--url: found "${url}", expected an https address such as https://mail.acme.example`);
  if (apiKeyFile === undefined) throw usage("--url needs --api-key-file FILE, a file that holds an API key");
  return { url: new URL(url), apiKey: readSecret(apiKeyFile) };
}

function readSecret(file: string): string {
  const key = readInputFile(file, "--api-key-file").toString().trim();
  if (!/^[\x21-\x7e]{1,200}$/.test(key)) throw usage(`--api-key-file: ${file} holds no API key`);
  return key;
}

/** `svc` where the PATH finds it; else as it was called. */
function programName(env: Io["env"]): string {
  const called = env["SVC_CALLED_AS"];
  if (env["npm_command"] === "exec") return "npx svc";
  if (called === undefined || !called.includes("/")) return "svc";
  const directory = called.slice(0, called.lastIndexOf("/"));
  return (env["PATH"] ?? "").split(":").includes(directory) ? "svc" : called;
}

function explain(error: unknown, io: Io, json: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const write = (line: string): void => void io.stderr.write(`${neutralised(line)}\n`);
  if (!(error instanceof CliFault)) {
    write(
      `svc: a bug: ${error instanceof Error ? (error.stack ?? error.message).split("\n").slice(0, 3).join(" ") : String(error)}`,
    );
    return 1;
  }
  if (json && error.body !== null) {
    io.stderr.write(`${error.body.trimEnd()}\n`);
    return error.exit;
  }
  write(`svc: ${error.message}`);
  for (const line of error.advice) write(line);
  return error.exit;
}
