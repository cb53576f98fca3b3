// --rate and --quota, as `accounts set` and `keys set` have them, and --limit of accounts. Which buckets there are, the
// server says.
import type { Command } from "commander";
import { limitNames } from "../access/account-limits.ts";
import { listed } from "./cli.ts";
import { usage } from "./fault.ts";

export interface LimitFlags {
  rate?: string[];
  quota?: string;
  limit?: string[];
}

export function addLimitOptions(command: Command): Command {
  return command
    .option(
      "--rate <bucket=burst/rate>",
      "requests at once and a second: messages-write=500/500; messages-write=default takes it back; repeat or separate by commas",
      listed,
    )
    .option("--quota <messages>", "messages a day of UTC, or none");
}

/** What only an account has. */
export function addAccountLimitOptions(command: Command): Command {
  return addLimitOptions(command).option(
    "--limit <name=number>",
    `what it may have of ${limitNames.join(", ")}: webhooks=200; webhooks=default takes it back; repeat or separate by commas`,
    listed,
  );
}

/** The body of a change. `flags`: those of the command, one of which must be given. */
export function limitsOf(
  { rate, quota, limit }: LimitFlags,
  flags: string[],
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const body = {
    ...more,
    ...(rate ? { rates: Object.fromEntries(rate.map(rateOf)) } : {}),
    ...(quota === undefined ? {} : { daily_quota: quotaOf(quota) }),
    ...(limit ? { limits: Object.fromEntries(limit.map(countOf)) } : {}),
  };
  if (Object.keys(body).length === 0)
    throw usage("nothing to change is named", `Give ${flags.join(" or ")}.`);
  return body;
}

function rateOf(text: string): [string, { burst: number; per_second: number } | null] {
  const [, bucket = "", value = "", burst, perSecond] =
    /^([a-z-]+)=(default|([1-9]\d{0,6})\/([1-9]\d{0,6}))$/.exec(text) ?? [];
  if (value === "")
    throw usage(`--rate: found "${text}", expected a bucket and its rate, such as messages-write=500/500`);
  return [bucket, value === "default" ? null : { burst: Number(burst), per_second: Number(perSecond) }];
}

function countOf(text: string): [string, number | null] {
  const [, name = "", value] = /^([a-z_]+)=(default|\d{1,9})$/.exec(text) ?? [];
  if (value === undefined)
    throw usage(`--limit: found "${text}", expected a limit and its number, such as webhooks=200`);
  if (!limitNames.some((known) => known === name))
    throw usage(`--limit: found "${name}", expected one of ${limitNames.join(", ")}`);
  return [name, value === "default" ? null : Number(value)];
}

function quotaOf(text: string): number | null {
  if (text === "none") return null;
  if (!/^\d{1,9}$/.test(text)) throw usage(`--quota: found "${text}", expected a number of messages or none`);
  return Number(text);
}
