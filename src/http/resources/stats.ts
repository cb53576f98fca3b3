// GET /v1/stats/*: the counters as sums, over time, and by what they were counted for. Which combinations of filters have
// rows is decided here (one filter for sums, domain or pool for lists); what a range means is stats/range.ts's.
// Over 300 lines: schemas, views and twelve routes of one resource.
import { z } from "zod";
import { dayMs, isoTime } from "../../clock.ts";
import { bounceCategories, type Classification } from "../../model/classification.ts";
import type { Totals } from "../../model/counters.ts";
import { quarterMs, type StatsListOf, type StatsOf } from "../../model/statistics.ts";
import { invalid, periodsOf, rangeOf, type Bound, type Range } from "../../stats/range.ts";
import { pageOfRanking, type RankedKey } from "../../stats/ranking.ts";
import * as rates from "../../stats/rates.ts";
import { addTotals, noTotals } from "../../stats/totals.ts";
import { granularities } from "../../stats/zone.ts";
import { idOf, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { domainName, pageFields, textFilter } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import {
  bounceTotals,
  bounceTotalsView,
  mailTotals,
  mailTotalsView,
  webhookTotals,
  webhookTotalsView,
} from "../totals.ts";

const rate = z.number().min(0).nullable().describe("Null if its denominator is 0.");
const classifications = Object.keys(bounceCategories) as [Classification, ...Classification[]];
const categories = [...new Set(Object.values(bounceCategories))];

const mailRates = z
  .strictObject({
    delivery_rate: rate,
    bounce_rate: rate,
    complaint_rate: rate,
    open_rate: rate,
    click_rate: rate,
  })
  .meta({ id: "StatsRates" });
const bounceRates = z.strictObject({ bounce_rate: rate }).meta({ id: "StatsBounceRates" });
const webhookRates = z.strictObject({ success_rate: rate }).meta({ id: "StatsWebhookRates" });

const shownRange = {
  from: timestamp.describe("The start of the range, rounded down to a quarter of an hour."),
  to: timestamp.describe("The end of the range, exclusive, rounded up to a quarter of an hour."),
  timezone: z.string().meta({ examples: ["Europe/Berlin"] }),
};

const formulas = <Formulas extends Record<string, string>>(of: Formulas) =>
  z.strictObject(
    Object.fromEntries(Object.keys(of).map((name) => [name, z.string()])) as Record<
      keyof Formulas & string,
      z.ZodString
    >,
  );

const mail = { ...shownRange, totals: mailTotals, rates: mailRates, formulas: formulas(rates.mailFormulas) };

export const statsSummarySchema = z.strictObject(mail).meta({ id: "Stats" });

export const statsTimeseriesSchema = z
  .strictObject({
    ...mail,
    granularity: z.enum(granularities),
    data: z.array(
      z.strictObject({
        start: timestamp.describe(
          "The start of the period; of the first and the last, only the part within the range is counted.",
        ),
        totals: mailTotals,
        rates: mailRates,
      }),
    ),
  })
  .meta({ id: "StatsTimeseries" });

const page = { has_more: z.boolean(), next_cursor: z.string().nullable() };
const other = "`(other)` is the sum of all beyond the first 1,000 of a day.";

export const statsListSchema = z
  .strictObject({
    ...mail,
    data: z.array(z.strictObject({ key: z.string().describe(other), totals: mailTotals, rates: mailRates })),
    ...page,
  })
  .meta({ id: "StatsList" });

export const statsBouncesSchema = z
  .strictObject({
    ...shownRange,
    totals: bounceTotals,
    rates: bounceRates,
    formulas: formulas(rates.bounceFormulas),
    data: z.array(
      z.strictObject({
        key: z.enum(classifications).describe("bounce_classification"),
        bounce_category: z.enum(categories),
        totals: bounceTotals,
        rates: bounceRates,
      }),
    ),
    ...page,
  })
  .meta({ id: "StatsBounces" });

export const statsWebhooksSchema = z
  .strictObject({
    ...shownRange,
    totals: webhookTotals,
    rates: webhookRates,
    formulas: formulas(rates.webhookFormulas),
    data: z.array(z.strictObject({ key: idOf("whk"), totals: webhookTotals, rates: webhookRates })),
    ...page,
  })
  .meta({ id: "StatsWebhooks" });

const years = [2000, 2199];

/** A date of the time zone asked for, or a moment. */
const bound = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: "is neither a date nor an ISO 8601 time, like 2026-11-27 or 2026-11-27T09:15:00Z",
  })
  .refine(
    (text) => {
      const year = new Date(text).getUTCFullYear();
      return year >= (years[0] ?? 0) && year <= (years[1] ?? 0);
    },
    `is not within ${years.join(" to ")}`,
  )
  .transform((text): Bound => {
    const at = Date.parse(text);
    return text.includes("T") ? { at } : { date: at / dayMs };
  });

const range = {
  from: bound.optional().describe("A date of `timezone`, or a time. By default 30 days before `to`."),
  to: bound.optional().describe("Exclusive. By default the end of today."),
  timezone: z.string().max(64).default("UTC").describe("An IANA time zone, like Europe/Berlin."),
  tag: textFilter,
  domain: domainName.optional().describe("The sender domain."),
  ip_pool: textFilter,
  test: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true")
    .describe("true: count the mail of test keys instead of that of live keys."),
};
const sums = z.object(range);
const series = z.object({ ...range, granularity: z.enum(granularities).default("day") });
const ranked = z.object({ ...range, ...pageFields() });
type Query = z.output<typeof sums>;

const common = {
  method: "GET",
  lastModifiedFrom: ["messages", "events", "stats"],
  changesEachMs: quarterMs, // the range of now moves on with the day of a time zone
  scopes: ["reporting"],
  bucket: "stats-read",
  listeners: "both",
  body: null,
} as const;

const lists: { path: string; kind: StatsListOf["kind"]; summary: string }[] = [
  { path: "tags", kind: "tag", summary: "Get counters by tag" },
  { path: "domains", kind: "domain", summary: "Get counters by sender domain" },
  { path: "recipient_domains", kind: "recipientDomain", summary: "Get counters by recipient domain" },
  {
    path: "providers",
    kind: "provider",
    summary: "Get counters by mailbox provider: a group of MX hosts",
  },
  { path: "ips", kind: "ip", summary: "Get counters by sending IP address" },
  { path: "ip_pools", kind: "ipPool", summary: "Get counters by IP pool" },
];

export function statsRoutes({ store }: RouteDeps): Route[] {
  const read = async (accountKey: number, kind: StatsListOf["kind"], query: Query, within: Range) => {
    const of: StatsListOf = { accountKey, test: query.test, kind, scope: scopeOf(kind, query) };
    const rows = await store.statsList(of, within);
    const own = ownKey(kind, query);
    return own === null ? rows : rows.filter(({ key }) => key === own);
  };
  const total = async (accountKey: number, query: Query, within: Range): Promise<Totals> => {
    const [sum] = await store.statsSums(rowOf(accountKey, query), [within.from, within.to]);
    return sum ?? noTotals();
  };

  const summary = (path: string): Route =>
    route({
      ...common,
      path,
      summary: "Get counters and rates of a range of time",
      answers: { 200: statsSummarySchema },
      query: sums,
      async handle({ account, query, now }) {
        const within = rangeOf(query, now);
        return json(200, mailBody(within, await total(account.key, query, within)));
      },
    });

  return [
    summary("/v1/stats"),
    summary("/v1/stats/summary"),
    route({
      ...common,
      path: "/v1/stats/timeseries",
      summary: "Get counters and rates by hour, day, week or month, with empty periods",
      answers: { 200: statsTimeseriesSchema },
      query: series,
      async handle({ account, query, now }) {
        const within = rangeOf(query, now);
        const { starts, bounds } = periodsOf(within, query.granularity, now);
        const found = await store.statsSums(rowOf(account.key, query), bounds);
        const data = starts.map((start, index) => ({
          start: isoTime(start),
          ...mailPart(found[index] ?? noTotals()),
        }));
        const body: z.input<typeof statsTimeseriesSchema> = {
          ...mailBody(within, found.reduce(addTotals, noTotals())),
          granularity: query.granularity,
          data,
        };
        return json(200, body);
      },
    }),
    ...lists.map(({ path, kind, summary: words }) =>
      route({
        ...common,
        path: `/v1/stats/${path}`,
        summary: `${words}, largest first`,
        answers: { 200: statsListSchema },
        query: ranked,
        async handle({ account, query, now }) {
          refuseFilters(query, ["tag"]);
          const within = rangeOf(query, now);
          const page = pageOfRanking(path, await read(account.key, kind, query, within), pageRequest(query));
          const body: z.input<typeof statsListSchema> = {
            ...mailBody(within, await total(account.key, query, within)),
            ...listBody(page, ({ key, totals }) => ({ key, ...mailPart(totals) })),
          };
          return json(200, body);
        },
      }),
    ),
    route({
      ...common,
      path: "/v1/stats/bounces",
      summary: "Get bounces by cause, largest first",
      answers: { 200: statsBouncesSchema },
      query: ranked,
      async handle({ account, query, now }) {
        refuseFilters(query, ["tag"]);
        const within = rangeOf(query, now);
        const page = pageOfRanking(
          "bounces",
          await read(account.key, "bounce", query, within),
          pageRequest(query),
        );
        return json(200, bouncesBody(within, page, await total(account.key, query, within)));
      },
    }),
    route({
      ...common,
      path: "/v1/stats/webhooks",
      summary: "Get webhook deliveries by endpoint, largest first",
      answers: { 200: statsWebhooksSchema },
      query: ranked,
      async handle({ account, query, now }) {
        refuseFilters(query, ["tag", "domain", "ip_pool"]);
        const within = rangeOf(query, now);
        const rows = await read(account.key, "webhook", query, within);
        const page = pageOfRanking("webhooks", rows, pageRequest(query));
        const body: z.input<typeof statsWebhooksSchema> = {
          ...rangeView(within),
          ...webhookPart(rows.map(({ totals }) => totals).reduce(addTotals, noTotals())),
          formulas: rates.webhookFormulas,
          ...listBody(page, ({ key, totals }) => ({ key, ...webhookPart(totals) })),
        };
        return json(200, body);
      },
    }),
  ];
}

/** The one row that sums are of. Throws Refusal where two filters are given: nothing is counted under both. */
function rowOf(accountKey: number, query: Query): StatsOf {
  const of = { accountKey, test: query.test };
  const [first, second] = given(query, ["tag", "domain", "ip_pool"]);
  if (second) throw invalid(second, `cannot be combined with ${first}: counts are kept for each alone`);
  if (query.tag !== undefined) return { ...of, kind: "tag", key: query.tag };
  if (query.domain !== undefined) return { ...of, kind: "domain", key: query.domain };
  if (query.ip_pool !== undefined) return { ...of, kind: "ipPool", key: query.ip_pool };
  return { ...of, kind: "account", key: "" };
}

function scopeOf(kind: StatsListOf["kind"], query: Query): StatsListOf["scope"] {
  const [first, second] = given(query, ["domain", "ip_pool"]);
  if (second) throw invalid(second, `cannot be combined with ${first}: counts are kept for each alone`);
  if (query.domain !== undefined && kind !== "domain") return { of: "domain", key: query.domain };
  if (query.ip_pool !== undefined && kind !== "ipPool") return { of: "ipPool", key: query.ip_pool };
  return { of: "all", key: "" };
}

/** A list of domains under one domain is that one. */
function ownKey(kind: StatsListOf["kind"], query: Query): string | null {
  return (kind === "domain" ? query.domain : kind === "ipPool" ? query.ip_pool : null) ?? null;
}

type FilterName = "tag" | "domain" | "ip_pool";
const given = (query: Query, names: FilterName[]): FilterName[] =>
  names.filter((name) => query[name] !== undefined);

function refuseFilters(query: Query, names: FilterName[]): void {
  const [name] = given(query, names);
  if (name) throw invalid(name, "is not a filter of this list: no counter combines both");
}

function rangeView({ from, to, zone }: Range) {
  return { from: isoTime(from), to: isoTime(to), timezone: zone.name };
}

function mailBody(within: Range, totals: Totals): z.input<typeof statsSummarySchema> {
  return { ...rangeView(within), ...mailPart(totals), formulas: rates.mailFormulas };
}

function mailPart(totals: Totals) {
  return { totals: mailTotalsView(totals), rates: rates.mailRates(totals) };
}

function webhookPart(totals: Totals) {
  return { totals: webhookTotalsView(totals), rates: rates.webhookRates(totals) };
}

function bouncesBody(
  within: Range,
  page: ReturnType<typeof pageOfRanking>,
  all: Totals,
): z.input<typeof statsBouncesSchema> {
  const part = (totals: Totals) => ({
    totals: bounceTotalsView(totals),
    rates: rates.bounceRates(totals, all),
  });
  const show = ({ key, totals }: RankedKey) => {
    const cause = key as Classification; // written by events/record.ts only
    return { key: cause, bounce_category: bounceCategories[cause], ...part(totals) };
  };
  return { ...rangeView(within), ...part(all), formulas: rates.bounceFormulas, ...listBody(page, show) };
}
