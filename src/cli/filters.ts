// The filters that lists of messages, queue and events share (a flag each, over the admin socket with an asterisk for any
// text), and the parameters of the API that they become. With an API key there are fewer, and no patterns.
import type { Command } from "commander";
import type { Cli } from "./cli.ts";
import { usage } from "./fault.ts";

const filters = {
  to: ["<email>", "to this address"],
  from: ["<email>", "from this address"],
  domain: ["<domain>", "to addresses of this domain"],
  tag: ["<tag>", "with this tag"],
  pool: ["<name>", "of this IP pool"],
  ip: ["<address>", "last tried from this address"],
  type: ["<type>", "with an event of this type"],
  code: ["<code>", "last reply code"],
  enhanced: ["<status>", "last enhanced status code"],
  key: ["<id>", "accepted with this API key"],
} as const;
type FilterName = keyof typeof filters;
export type FilterFlags = { [name in FilterName]?: string };

const names = Object.keys(filters) as FilterName[];

export function addFilters(command: Command): Command {
  for (const name of names) command.option(`--${name} ${filters[name][0]}`, filters[name][1]);
  return command.addHelpText(
    "after",
    "\nIn a filter * stands for any text:\n  --to '*@example.com' --code '4*'",
  );
}

/** `exact`: the parameters that an API key has as well, for a value without an asterisk. Throws usage. */
export function filtersOf(
  cli: Cli,
  flags: FilterFlags,
  exact: Partial<Record<FilterName, string>> = {},
): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = flags[name];
      if (value === undefined) return [];
      const parameter = exact[name];
      if (parameter !== undefined && !value.includes("*")) return [[parameter, value]];
      if (cli.globals.url === undefined) return [[name, value]];
      throw parameter === undefined
        ? usage(`--${name} is for the server's own admin socket, not for an API key`)
        : usage(
            `--${name}: found "${value}", expected no asterisk: patterns are for the server's own admin socket`,
          );
    }),
  );
}
