// --rate and --quota, as `accounts set` and `keys set` have them. Which buckets there are, the server says.
import type { Command } from "commander";
import { listed } from "./cli.ts";
import { usage } from "./fault.ts";

export interface LimitFlags {
  rate?: string[];
  quota?: string;
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

/** The body of a change. `flags`: those of the command, one of which must be given. */
export function limitsOf(
  { rate, quota }: LimitFlags,
  flags: string[],
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const body = {
    ...more,
    ...(rate ? { rates: Object.fromEntries(rate.map(rateOf)) } : {}),
    ...(quota === undefined ? {} : { daily_quota: quotaOf(quota) }),
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

function quotaOf(text: string): number | null {
  if (text === "none") return null;
  if (!/^\d{1,9}$/.test(text)) throw usage(`--quota: found "${text}", expected a number of messages or none`);
  return Number(text);
}
