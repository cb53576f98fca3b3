// `svc domains tracking`: whether the messages of a domain are tracked, by what default, and which host their links lead to.
import type { Command } from "commander";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { withExample } from "../help-example.ts";
import type { Row } from "../output.ts";
import { recordsOf, showRecords } from "../records.ts";

interface SetFlags {
  host?: string;
  opens?: string;
  clicks?: string;
}

export function registerTracking(domains: Command, cli: Cli): void {
  const tracking = domains.command("tracking").description("tracking of opens and clicks: show, set, off");
  tracking.helpCommand(false);
  const at = (name: string): string => `/v1/domains/${segment(name)}`;
  withExample(
    tracking
      .command("show <domain>")
      .description("show whether and how the messages of a domain are tracked"),
    "domains tracking show acme.example",
  ).action(async (name: string) => show(cli, await cli.client.call("GET", at(name))));
  withExample(
    tracking
      .command("set <domain>")
      .description("let messages from a domain be tracked, and set the defaults of those that do not say")
      .option("--host <name>", "host of the links, below the domain; none: remove it")
      .option("--opens <on|off>", "default of opens")
      .option("--clicks <on|off>", "default of clicks"),
    "domains tracking set acme.example --host t.acme.example --opens on --clicks on",
  ).action(async (name: string, flags: SetFlags) => {
    const opens = switchOf(flags.opens, "--opens");
    const clicks = switchOf(flags.clicks, "--clicks");
    const body = {
      ...(flags.host === undefined ? {} : { tracking_domain: orNone(flags.host) }),
      tracking: {
        enabled: true,
        ...(opens === null ? {} : { opens }),
        ...(clicks === null ? {} : { clicks }),
      },
    };
    show(cli, await cli.client.call("PATCH", at(name), { body }));
    if (flags.host !== undefined && flags.host !== "none")
      cli.out.next(`Publish the record, then: ${cli.program} domains verify ${name}`);
  });
  withExample(
    tracking
      .command("off <domain>")
      .description("track no new messages of a domain; links of sent mail go on working"),
    "domains tracking off acme.example",
  ).action(async (name: string) =>
    show(cli, await cli.client.call("PATCH", at(name), { body: { tracking: { enabled: false } } })),
  );
}

function show(cli: Cli, { json, text }: Answer): void {
  if (cli.out.json) return cli.out.body(text);
  const { enabled, opens, clicks } = (json["tracking"] ?? {}) as Row;
  cli.out.fields([
    ["enabled", enabled],
    ["opens", opens],
    ["clicks", clicks],
    ["host", json["tracking_domain"] ?? "none"],
  ]);
  showRecords(
    cli,
    recordsOf(json).filter(({ purpose }) => purpose === "tracking"),
  );
}

export function orNone(given: string): string | null {
  return given === "none" ? null : given;
}

/** null: not given. Throws usage. */
export function switchOf(given: string | undefined, flag: string): boolean | null {
  if (given === undefined) return null;
  if (given === "on" || given === "off") return given === "on";
  throw usage(`${flag}: found "${given}", expected on or off`);
}
