// The entry point of the command line: prepares a command, runs it, and turns a failure into a message and an exit code.
// Loads only what the command needs.
import { createClient, type Client, type Target } from "./client.ts";
import { readInputFile, type Cli, type Globals } from "./cli.ts";
import type { DaemonModule } from "./daemon-contract.ts";
import { configuredSocket, socketCandidates } from "./daemon-address.ts";
import { CliFault, usage } from "./fault.ts";
import { endOnOutputFault, processIo, type Io } from "./io.ts";
import { createOutput } from "./output.ts";
import { escapedJson } from "../unsafe-text.ts";
import { neutralised } from "./text.ts";

declare const __VERSION__: string;

/** Runs the process's command line; resolves with the exit code. */
export async function main(argv: string[], loadDaemon: () => Promise<DaemonModule>): Promise<number> {
  endOnOutputFault();
  return run(argv.slice(2), processIo(), loadDaemon);
}

/** Runs `args` in the world of `io`. */
export async function run(args: string[], io: Io, loadDaemon: () => Promise<DaemonModule>): Promise<number> {
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
    io.stdout.write(`${__VERSION__}\n`);
    return 0;
  }
  const context = createContext(io, loadDaemon);
  try {
    const { runProgram } = await import("./program.ts");
    return await runProgram(args, context.cli, context.complete);
  } catch (error) {
    return explain(error, io, context.cli.globals.json);
  }
}

interface Context {
  cli: Cli;
  complete: (options: Record<string, unknown>) => void;
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
  if (apiKeyFile === undefined) throw usage("--url needs --api-key-file FILE, a file with an API key");
  return { url: new URL(url), apiKey: readSecret(apiKeyFile) };
}

function readSecret(file: string): string {
  const key = readInputFile(file, "--api-key-file").toString().trim();
  if (!/^[\x21-\x7e]{1,200}$/.test(key)) throw usage(`--api-key-file: ${file} has no API key`);
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
  const write = (line: string): void => void io.stderr.write(`${neutralised(line)}\n`);
  if (!(error instanceof CliFault)) {
    write(
      `svc: a bug: ${error instanceof Error ? (error.stack ?? error.message).split("\n").slice(0, 3).join(" ") : String(error)}`,
    );
    return 1;
  }
  if (json && error.body !== null) {
    io.stderr.write(`${escapedJson(error.body.trimEnd())}\n`);
    return error.exit;
  }
  write(`svc: ${error.message}`);
  for (const line of error.advice) write(line);
  return error.exit;
}
