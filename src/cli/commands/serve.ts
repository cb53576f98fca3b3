// `svc serve`: runs the service until SIGTERM or SIGINT; a second one ends it at once, SIGHUP reads the
// certificates and the shaping file again. `--dev` runs it for evaluation and prints what to try.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { ConfigRequest, ValidConfig } from "../../config.ts";
import { placesOf } from "../../config/places.ts";
import type { Cli } from "../cli.ts";
import type { DaemonModule, RunningDaemon } from "../daemon-contract.ts";
import type { createLog } from "../../log.ts";
import { describeDev } from "../dev-screen.ts";
import { CliFault } from "../fault.ts";

interface ServeFlags {
  config?: string;
  dataDir?: string;
  logLevel?: string;
  logFormat?: string;
  check?: boolean;
  dev?: boolean;
}

export function register(serve: Command, cli: Cli): void {
  serve
    .option("--config <file>", "read this svc.yaml instead of the default ones (SVC_CONFIG)")
    .option("--data-dir <dir>", "database, spool, keys (SVC_DATA_DIR)")
    .option("--log-level <level>", "debug, info, warn or error (SVC_LOG_LEVEL)")
    .option("--log-format <format>", "auto, json or pretty (SVC_LOG_FORMAT)")
    .option("--check", "check the configuration and exit")
    .option("--dev", "evaluation mode: loopback ports, all mail goes to the local inbox")
    .action(async (flags: ServeFlags) => {
      if (flags.dev) return serveDev(cli, flags);
      const request = requestOf(cli, flags);
      const valid = await read(cli, flags, request);
      const { config, files } = valid;
      if (flags.check) {
        cli.out.line(
          `The configuration is valid (${files.length > 0 ? files.join(", ") : "no file, defaults only"}).`,
        );
        return undefined;
      }
      const { changedOptions } = await import("../../config.ts");
      return runUntilSignal(
        cli,
        { config, changes: () => changedOptions(valid, request) },
        async (daemon, log) => {
          const listeners = daemon.addresses().map(({ name, address }) => `${name} ${address}`);
          log.info({ listeners, data_dir: config.dataDir }, "svc started");
        },
      );
    });
}

function requestOf(cli: Cli, flags: ServeFlags): ConfigRequest {
  const { env, home, uid, cwd } = cli.io;
  const socket = cli.globals.socket;
  return {
    env,
    home,
    uid,
    flags: {
      ...(flags.config === undefined ? {} : { config: resolve(cwd, flags.config) }),
      ...(flags.dataDir === undefined ? {} : { data_dir: resolve(cwd, flags.dataDir) }),
      ...(flags.logLevel === undefined ? {} : { "log.level": flags.logLevel }),
      ...(flags.logFormat === undefined ? {} : { "log.format": flags.logFormat }),
      ...(socket === undefined ? {} : { socket: resolve(cwd, socket) }),
    },
  };
}

async function read(cli: Cli, flags: ServeFlags, request: ConfigRequest): Promise<ValidConfig> {
  const { devConfig, faultText, loadConfig } = await import("../../config.ts");
  const result = flags.dev ? devConfig(request) : loadConfig(request);
  if ("config" in result) return result;
  const { length } = result.faults;
  throw new CliFault(78, `the configuration has ${length === 1 ? "a fault" : `${length} faults`}:`, [
    ...result.faults.map((fault) => `  ${faultText(fault)}`),
    `Correct it and check again: ${cli.program} serve --check`,
  ]);
}

/** A data directory of its own that goes away with the process, unless one is named. */
async function serveDev(cli: Cli, flags: ServeFlags): Promise<void> {
  const request = requestOf(cli, flags);
  const named = request.flags.data_dir ?? cli.io.env["SVC_DATA_DIR"];
  const dataDir = named ?? mkdtempSync(join(tmpdir(), "svc-dev-"));
  const remove = (): void => {
    if (named === undefined) rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const chosen = request.flags.socket ?? cli.io.env["SVC_SOCKET"];
    const socket =
      chosen ?? (named === undefined ? await usualSocket(cli) : null) ?? join(dataDir, "admin.sock");
    const { config } = await read(cli, flags, {
      ...request,
      flags: { ...request.flags, data_dir: dataDir, socket },
    });
    if (flags.check) return cli.out.line("The configuration is valid.");
    const found = chosen === undefined && dirname(socket) !== dataDir;
    await runUntilSignal(
      cli,
      { config },
      async (daemon) => {
        const credentials = await daemon.devCredentials();
        describeDev(cli, {
          config,
          credentials,
          addresses: daemon.addresses(),
          found,
          temporary: named === undefined,
        });
      },
      remove,
    );
  } finally {
    remove();
  }
}

/** The socket where every command looks, if it is free to take. */
async function usualSocket(cli: Cli): Promise<string | null> {
  const places = placesOf(cli.io);
  const path = places.socket ?? join(places.dataDir, "admin.sock");
  if (existsSync(path) && (await answers(path))) return null;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: places.system ? 0o750 : 0o700 });
    return path;
  } catch {
    return null;
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((done) => {
    const probe = connect(path);
    const end = (alive: boolean) => (): void => {
      probe.destroy();
      done(alive);
    };
    probe.once("connect", end(true));
    probe.once("error", end(false));
  });
}

type Log = ReturnType<typeof createLog>;

/** What of the daemon's options is known before it is loaded. */
type Start = Omit<Parameters<DaemonModule["serve"]>[0], "log" | "logLines" | "env">;

async function runUntilSignal(
  cli: Cli,
  first: Start,
  started: (daemon: RunningDaemon, log: Log) => Promise<void>,
  lastly: () => void = () => undefined,
): Promise<void> {
  const { createLog: create } = await import("../../log.ts");
  const log = create({ ...first.config.log, env: cli.io.env });
  let signals = 0;
  let tell = (): void => undefined;
  const asked = new Promise<void>((done) => (tell = done));
  const onStop = (): void => {
    signals += 1;
    if (signals === 1) return tell();
    log.flush();
    lastly();
    cli.io.exit(1);
  };
  const off = [cli.io.onSignal("SIGTERM", onStop), cli.io.onSignal("SIGINT", onStop)];
  try {
    const daemon = await start(cli, first, log);
    off.push(cli.io.onSignal("SIGHUP", () => void daemon.reload()));
    try {
      if (signals === 0) await started(daemon, log);
      await Promise.race([asked, daemon.finished]);
      log.info({}, "stopping; a second signal exits at once");
    } finally {
      await daemon.stop();
    }
    await daemon.finished;
  } finally {
    for (const undo of off) undo();
    log.flush();
  }
  // An attempt that outlived the drain may hold its socket for ten minutes more: the next start has its lease by then.
  lastly();
  cli.io.exit(0);
}

async function start(cli: Cli, first: Start, log: Log): Promise<RunningDaemon> {
  const daemon = await cli.loadDaemon();
  try {
    return await daemon.serve({ ...first, log, logLines: log.lines, env: cli.io.env });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    log.debug({ err: error.stack }, "could not start");
    throw startFault(cli, error);
  }
}

/** Why it does not start, in words: a taken port, a port that takes root, a data directory in use or damaged. */
function startFault(cli: Cli, error: NodeJS.ErrnoException & { address?: string; port?: number }): CliFault {
  const { code, address = error.path ?? "", port } = error;
  const where = port === undefined ? address : `${address}:${port}`;
  switch (code) {
    case "EADDRINUSE":
      return new CliFault(1, `${where} is in use by another program`, [
        ...(port === undefined ? [] : [`See which one: ss -ltnp 'sport = :${port}'`]),
        "Stop it, or choose another port in svc.yaml or by SVC_HTTP_LISTEN, SVC_RELAY_STARTTLS, SVC_RELAY_IMPLICIT_TLS, SVC_INBOUND_LISTEN.",
      ]);
    case "EACCES":
      return new CliFault(4, `no permission to use ${where}: ${error.message}`, [
        "Ports below 1024 need root or the capability CAP_NET_BIND_SERVICE; directories must belong to this user.",
      ]);
    case "EADDRNOTAVAIL":
      return new CliFault(1, `${where} is not an address of this machine`);
    case "STORE_DAMAGED":
      return new CliFault(1, `it does not start: ${error.message}`, [
        "Restore the data directory from an intact copy; keep this one for what can be recovered from it.",
      ]);
    default:
      return new CliFault(1, `it does not start: ${error.message}`, [
        `If it runs already: ${cli.program} status`,
      ]);
  }
}
