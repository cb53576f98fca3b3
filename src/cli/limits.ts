// --rate and --quota, as `accounts set` and `keys set` have them, and --limit of accounts. How limits are shown.
import { accountLimits, limitNames } from "../access/account-limits.ts";
import { accountBuckets, routeBuckets } from "../access/buckets.ts";
import { listed } from "./cli.ts";
import { usage } from "./fault.ts";
import type { Row } from "./output.ts";
import { cell } from "./text.ts";
import type { Flag } from "./verbs.ts";

/** The buckets of which a rate can be set. */
const bucketsOf = { account: accountBuckets, key: routeBuckets } as const;

export const limitFlags = (of: keyof typeof bucketsOf): readonly Flag[] => [
  {
    flag: "--rate <bucket=burst/rate>",
    about:
      "rate limit as burst/per second: messages-write=500/500; messages-write=default resets it; repeat or separate by commas",
    member: "rates",
    collect: listed,
    readAll: (texts) => Object.fromEntries(texts.map((text) => rateOf(text, bucketsOf[of]))),
  },
  {
    flag: "--quota <messages>",
    about: "messages per UTC day, or none",
    member: "daily_quota",
    read: quotaOf,
  },
];

/** What only an account has. */
export const accountLimitFlags: readonly Flag[] = [
  ...limitFlags("account"),
  {
    flag: "--limit <name=number>",
    about: `limit of ${limitNames.join(", ")}: webhooks=200; webhooks=default resets it; repeat or separate by commas`,
    member: "limits",
    collect: listed,
    readAll: (texts) => Object.fromEntries(texts.map(countOf)),
  },
];

function rateOf(
  text: string,
  buckets: readonly string[],
): [string, { burst: number; per_second: number } | null] {
  const [, bucket = "", value = "", burst, perSecond] =
    /^([a-z-]+)=(default|([1-9]\d{0,6})\/([1-9]\d{0,6}))$/.exec(text) ?? [];
  if (value === "")
    throw usage(`--rate: found "${text}", expected a bucket and its rate, such as messages-write=500/500`);
  if (!buckets.includes(bucket))
    throw usage(`--rate: found the bucket "${bucket}", expected one of ${buckets.join(", ")}`);
  return [bucket, value === "default" ? null : { burst: Number(burst), per_second: Number(perSecond) }];
}

/** An account or a key for a person: rates and limits as the flags that set them have them, in place of JSON. */
export function shownLimits(body: Row): [string, unknown][] {
  return Object.entries(body).flatMap(([name, value]): [string, unknown][] => {
    if (name === "rates") return [["rates", ratesText(value)]];
    if (name === "daily_quota") return [["daily_quota", value ?? "none"]];
    if (name !== "limits" || !isRow(value)) return [[name, value]];
    return Object.entries(value).map(([limit, most]) => [`limit ${limit}`, limitText(limit, most)]);
  });
}

/** `messages-write=500/400`; the defaults where none is set. */
export function ratesText(value: unknown): string {
  const rates = isRow(value) ? Object.entries(value) : [];
  if (rates.length === 0) return "default";
  return rates
    .map(
      ([bucket, rate]) =>
        `${bucket}=${isRow(rate) ? `${cell(rate["burst"])}/${cell(rate["per_second"])}` : cell(rate)}`,
    )
    .join(", ");
}

function limitText(name: string, most: unknown): string {
  const of = limitNames.find((known) => known === name);
  const what = of === undefined ? "" : ` ${accountLimits[of].of}`;
  return most === null
    ? `half of what the other accounts leave${what && `, in${what}`}`
    : `${cell(most)}${what}`;
}

const isRow = (value: unknown): value is Row =>
  value !== null && typeof value === "object" && !Array.isArray(value);

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
