// `svc config show`, `get`, `schema` and `systemd-unit`: the configuration that `serve` would run with, and what is made of
// it. Nothing is changed. No option is a secret; the one secret, a password in the environment, is named and not shown.
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { OptionOrigin, ValidConfig } from "../../config.ts";
import type { OptionPath } from "../../config/options.ts";
import { placesOf } from "../../config/places.ts";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { nearest } from "../nearest.ts";
import { unitFile } from "../package-files.ts";
import { unitFor } from "../systemd-unit.ts";

export interface ConfigFlags {
  config?: string;
}

export function registerShow(config: Command, cli: Cli): void {
  const file = ["--config <file>", "this svc.yaml instead of the default one (SVC_CONFIG)"] as const;
  config
    .command("show")
    .description("show each option and its value")
    .option(
      "--origin",
      "and where the value comes from: a file with its line, the environment, or the default",
    )
    .option("--changed", "only options that are given a value")
    .option(...file)
    .addHelpText("after", "\nExamples:\n  svc config show --origin --changed\n  svc --json config show")
    .action((flags: ShowFlags) => show(cli, flags));
  config
    .command("get <option>")
    .description("print the value of an option, as config set takes it")
    .option(...file)
    .addHelpText("after", "\nExamples:\n  svc config get outbound.max_age\n  svc config get http.listen")
    .action((path: string, flags: ConfigFlags) => get(cli, path, flags));
  config
    .command("schema")
    .description("print the JSON Schema of svc.yaml, for editors")
    .addHelpText(
      "after",
      `
Examples:
  svc config schema > /etc/svc/svc.schema.json
  # and as the first line of svc.yaml: # yaml-language-server: $schema=svc.schema.json`,
    )
    .action(async () => {
      const { configSchema } = await import("../../config/schema.ts");
      cli.out.body(JSON.stringify(configSchema(), null, cli.out.json ? undefined : 2));
    });
  config
    .command("systemd-unit")
    .description("print a systemd unit for the paths, the user and the environment of this installation")
    .option(...file)
    .addHelpText(
      "after",
      `
The Debian package has its unit already.

Examples:
  svc config systemd-unit | sudo tee /etc/systemd/system/svc-mail.service
  sudo systemctl daemon-reload && sudo systemctl enable --now svc-mail`,
    )
    .action((flags: ConfigFlags) => unit(cli, flags));
}

/** The one file to read, where it is named. */
export const named = ({ io }: Cli, { config }: ConfigFlags): string | undefined => {
  const given = config ?? io.env["SVC_CONFIG"];
  return given === undefined ? undefined : resolve(io.cwd, given);
};

/** The same path where it is an option; throws usage with what was meant. */
export async function refuseUnknownOption(cli: Cli, path: string): Promise<OptionPath> {
  const { isOption } = await import("../../config/layers.ts");
  const { optionPaths } = await import("../../config/options.ts");
  if (isOption(path)) return path;
  const whole = optionPaths.find((option) => path.startsWith(`${option}.`));
  const within = optionPaths.filter((option) => option.startsWith(`${path}.`));
  const near = nearest(path, optionPaths);
  throw usage(
    `${path} is not an option`,
    ...(whole !== undefined
      ? [`${whole} is, and is set as a whole`]
      : within.length > 0
        ? [`It is a section: ${within.join(", ")}`]
        : near !== null
          ? [`Did you mean ${near}?`]
          : [`List the options: ${cli.program} config show`]),
  );
}

async function read(cli: Cli, flags: ConfigFlags): Promise<ValidConfig> {
  const { faultText, loadConfig } = await import("../../config.ts");
  const only = named(cli, flags);
  const result = loadConfig({ ...cli.io, flags: only === undefined ? {} : { config: only } });
  if ("faults" in result)
    throw new CliFault(78, "the configuration has faults:", result.faults.map(faultText));
  return result;
}

interface ShowFlags extends ConfigFlags {
  origin?: boolean;
  changed?: boolean;
}

async function show(cli: Cli, flags: ShowFlags): Promise<void> {
  const { passwordVariable } = await import("../../config/layers.ts");
  const { optionPaths } = await import("../../config/options.ts");
  const config = await read(cli, flags);
  const rows = optionPaths
    .map((option) => ({ option, ...config.originOf(option) }))
    .filter(({ source }) => !flags.changed || source !== null)
    .map((row) => ({ option: row.option, value: row.written ?? null, source: row.source, line: row.line }));
  if (cli.out.json) return cli.out.body(JSON.stringify({ options: rows }));
  cli.out.table(
    [
      { title: "option", of: ({ option }) => option },
      { title: "value", of: ({ value }) => valueText(value) },
      ...(flags.origin ? [{ title: "from", of: originText }] : []),
    ],
    rows,
  );
  if (cli.io.env[passwordVariable]) cli.out.note(`${passwordVariable} is set, and is not shown.`);
  return undefined;
}

function originText({ source, line }: Partial<OptionOrigin>): string {
  if (source === null || source === undefined) return "default";
  return line === null || line === undefined ? source : `${source}:${line}`;
}

/** As `config set` and the environment take it: lists with commas, structures in YAML's flow form, which JSON is. */
function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value as string | number | boolean);
}

async function get(cli: Cli, path: string, flags: ConfigFlags): Promise<void> {
  const option = await refuseUnknownOption(cli, path);
  const { written, source, line } = (await read(cli, flags)).originOf(option);
  if (cli.out.json) return cli.out.body(JSON.stringify({ option, value: written ?? null, source, line }));
  const text = valueText(written);
  if (text === "") return cli.out.note(`${option} has no value.`);
  return cli.out.line(text);
}

async function unit(cli: Cli, flags: ConfigFlags): Promise<void> {
  const { io } = cli;
  const { environmentName, optionPaths } = await import("../../config/options.ts");
  const { passwordVariable } = await import("../../config/layers.ts");
  const valid = await read(cli, flags);
  const { config, originOf } = valid;
  const environment = Object.fromEntries(
    optionPaths
      .filter((option) => originOf(option).source === "environment")
      .map((option) => environmentName(option))
      .map((name) => [name, io.env[name] ?? ""]),
  );
  const socket = io.env["SVC_SOCKET"];
  const reads = [
    config.tls.cert,
    config.tls.key,
    config.tls.trackingCertificates,
    config.tls.acme.eabMacKeyFile,
    config.outbound.shapingFile,
    config.webhooks.caFile,
    valid.values["outbound.smart_host.password_file"],
  ].filter((path) => path !== null);
  cli.out.text(
    unitFor(readFileSync(unitFile, "utf8"), {
      program: programPath(cli),
      user: placesOf(io).system ? null : (io.env["USER"] ?? String(io.uid)),
      config: named(cli, flags) ?? null,
      environment: socket ? { ...environment, SVC_SOCKET: socket } : environment,
      dataDir: config.dataDir,
      writes: [config.backup.to, ...(socket ? [dirname(socket)] : [])].filter(
        (path) => path !== config.dataDir && !path.startsWith(`${config.dataDir}/`),
      ),
      reads,
    }).trimEnd(),
  );
  if (io.env[passwordVariable])
    cli.out.note(
      `${passwordVariable} is not in the unit, which others can read: put the password into a file, and name that in outbound.smart_host.password_file.`,
    );
}

/** Where the command is: as it was called, or as the PATH finds it. */
function programPath({ io }: Cli): string {
  const called = io.env["SVC_CALLED_AS"] ?? "svc";
  if (called.includes("/")) return resolve(io.cwd, called);
  const found = (io.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, called))
    .find(isExecutable);
  return found ?? "/usr/bin/svc";
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
