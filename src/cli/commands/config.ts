// `svc config`: checks svc.yaml, and changes options of it. What would be a fault is not written. What it shows of the
// configuration is config-show.ts's.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import type { OptionPath } from "../../config/options.ts";
import { placesOf } from "../../config/places.ts";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { named, refuseUnknownOption, registerShow, type ConfigFlags } from "./config-show.ts";

export function register(config: Command, cli: Cli): void {
  const file = ["--config <file>", "this svc.yaml instead of the default one (SVC_CONFIG)"] as const;
  config
    .command("check")
    .description("check the configuration that serve would run with")
    .option(...file)
    .action((flags: ConfigFlags) => check(cli, flags));
  config
    .command("set <option> <value> [more...]")
    .description(
      "set an option in svc.yaml, such as outbound.max_age 24h, or several at once; comments stay, lists take commas",
    )
    .option(...file)
    .action((path: string, value: string, more: string[], flags: ConfigFlags) =>
      change(cli, pairs([path, value, ...more]), flags),
    );
  config
    .command("unset <option>")
    .description("remove an option from svc.yaml, so that its default holds")
    .option(...file)
    .action((path: string, flags: ConfigFlags) => change(cli, [[path, null]], flags));
  registerShow(config, cli);
}

async function check(cli: Cli, flags: ConfigFlags): Promise<void> {
  const { faultText, loadConfig } = await import("../../config.ts");
  const only = named(cli, flags);
  const result = loadConfig({ ...cli.io, flags: only === undefined ? {} : { config: only } });
  if ("faults" in result)
    throw new CliFault(78, "the configuration has faults:", result.faults.map(faultText));
  cli.out.line(`The configuration is valid (${result.files.join(", ") || "no file, defaults only"}).`);
}

/** What is given at once is checked at once: a login and its password make sense together alone. */
function pairs(given: readonly string[]): [path: string, value: string][] {
  return given.flatMap((path, i): [string, string][] => {
    if (i % 2 === 1) return [];
    const value = given[i + 1];
    if (value === undefined) throw usage(`${path}: found no value, expected OPTION VALUE, and so on`);
    if (given.some((other, at) => at > i && at % 2 === 0 && other === path))
      throw usage(`${path}: found it twice, expected each option once`);
    return [[path, value]];
  });
}

/** Sets each option, or unsets it where its value is null; all of them or none. */
async function change(
  cli: Cli,
  given: readonly [path: string, value: string | null][],
  flags: ConfigFlags,
): Promise<void> {
  const { faultText, loadConfig } = await import("../../config.ts");
  const { withOption } = await import("../../config/edit.ts");
  const { readTextFile } = await import("../../config/files.ts");
  const places = placesOf(cli.io);
  const only = named(cli, flags);
  const file = only ?? places.userConfig ?? places.systemConfig;
  let text = edited(file, () => readTextFile(file) ?? "");
  const changes: [OptionPath, string | null][] = [];
  for (const [path, value] of given) {
    const option = await refuseUnknownOption(cli, path);
    const before = text;
    text = edited(file, () => withOption(before, option, value));
    changes.push([option, value]);
  }
  const result = loadConfig({
    ...cli.io,
    flags: only === undefined ? {} : { config: only },
    readFile: (name) => (name === file ? text : readTextFile(name)),
  });
  if ("faults" in result)
    throw new CliFault(78, `${file} is not changed: it would have faults:`, result.faults.map(faultText));
  write(file, text);
  for (const [path, value] of changes)
    cli.out.line(value === null ? `${path} is no longer set in ${file}` : `${path} is set in ${file}`);
  let takesEffect = false;
  for (const [path, value] of changes) {
    const { source } = result.originOf(path);
    if (value === null && source !== null)
      cli.out.note(`Its default does not hold: ${path} is given by ${source}.`);
    else if (value !== null && source !== file)
      cli.out.note(`It has no effect: ${path} is given by ${source}, which stands above.`);
    else takesEffect = true;
  }
  if (takesEffect) cli.out.next("It takes effect when the service is started again.");
}

function edited(file: string, edit: () => string): string {
  try {
    return edit();
  } catch (error) {
    throw new CliFault(
      78,
      `${file} cannot be changed: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** Whole or not at all; mode and owner stay, and a link to the file. */
function write(link: string, text: string): void {
  const file = existsSync(link) ? realpathSync(link) : link;
  const next = `${file}.new`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    const before = existsSync(file) ? statSync(file) : null;
    writeFileSync(next, text, { mode: 0o600, flush: true });
    if (before) chownSync(next, before.uid, before.gid);
    chmodSync(next, before ? before.mode & 0o777 : 0o644);
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw new CliFault(
      4,
      `${file} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      ["Run it with sudo, or choose another file with --config."],
    );
  }
}
