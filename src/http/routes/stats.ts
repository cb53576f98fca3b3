// GET /v1/stats/*: what was counted, as sums, by time, and by what it was counted of. Which combinations of filters
// there are rows for is decided here (one filter for sums, domain or pool for lists); what a range means is stats/range.ts's.
import { z } from "zod";
import { dayMs, isoTime } from "../../clock.ts";
import { bounceCategories, type Classification } from "../../model/classification.ts";
import type { Totals } from "../../model/counters.ts";
import { quarterMs, type StatsListOf, type StatsOf } from "../../model/statistics.ts";
import { invalid, periodsOf, rangeOf, type Bound, type Range } from "../../stats/range.ts";
import { pageOfRanking, type Counted } from "../../stats/ranking.ts";
import * as rates from "../../stats/rates.ts";
import { addTotals, noTotals } from "../../stats/totals.ts";
import { granularities } from "../../stats/zone.ts";
import { domainName, pageFields, textFilter } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import * as shapes from "../shapes/stats.ts";
import { mailTotalsView, webhookTotalsView } from "../totals.ts";

type Shown<Shape extends z.ZodType> = z.input<Shape>;

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
  to: bound.optional().describe("Until before then. By default the end of today."),
  timezone: z.string().max(64).default("UTC").describe("Name of the IANA, like Europe/Berlin."),
  tag: textFilter,
  domain: domainName.optional().describe("The domain that is sent from."),
  ip_pool: textFilter,
  test: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true")
    .describe("true: what test keys sent, in place of what live ones did."),
};
const sums = z.object(range);
const series = z.object({ ...range, granularity: z.enum(granularities).default("day") });
const list = z.object({ ...range, ...pageFields() });
type Query = z.output<typeof sums>;

const common = {
  method: "GET",
  changes: ["messages", "events", "stats"],
  changesEachMs: quarterMs, // the range of now moves on with the day of a time zone
  scopes: ["reporting"],
  bucket: "stats-read",
  doors: "both",
  body: null,
} as const;

const lists: { path: string; kind: StatsListOf["kind"]; summary: string }[] = [
  { path: "tags", kind: "tag", summary: "Counts by tag" },
  { path: "domains", kind: "domain", summary: "Counts by the domain that was sent from" },
  { path: "recipient_domains", kind: "recipientDomain", summary: "Counts by the recipients' domain" },
  {
    path: "providers",
    kind: "provider",
    summary: "Counts by who takes the recipients' mail: a group of MX hosts",
  },
  { path: "ips", kind: "ip", summary: "Counts by sending address" },
  { path: "ip_pools", kind: "ipPool", summary: "Counts by IP pool" },
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
      summary: "Counts and rates of a stretch of time",
      answers: { 200: shapes.statsSummaryShape },
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
      summary: "Counts and rates by hour, day, week or month, those of none too",
      answers: { 200: shapes.statsTimeseriesShape },
      query: series,
      async handle({ account, query, now }) {
        const within = rangeOf(query, now);
        const { starts, bounds } = periodsOf(within, query.granularity, now);
        const found = await store.statsSums(rowOf(account.key, query), bounds);
        const data = starts.map((start, index) => ({
          start: isoTime(start),
          ...mailPart(found[index] ?? noTotals()),
        }));
        const body: Shown<typeof shapes.statsTimeseriesShape> = {
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
        summary: `${words}, biggest first`,
        answers: { 200: shapes.statsListShape },
        query: list,
        async handle({ account, query, now }) {
          refuseFilters(query, ["tag"]);
          const within = rangeOf(query, now);
          const page = pageOfRanking(path, await read(account.key, kind, query, within), pageRequest(query));
          const body: Shown<typeof shapes.statsListShape> = {
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
      summary: "Bounces by cause, biggest first",
      answers: { 200: shapes.statsBouncesShape },
      query: list,
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
      summary: "Attempts to post events, by endpoint, biggest first",
      answers: { 200: shapes.statsWebhooksShape },
      query: list,
      async handle({ account, query, now }) {
        refuseFilters(query, ["tag", "domain", "ip_pool"]);
        const within = rangeOf(query, now);
        const rows = await read(account.key, "webhook", query, within);
        const page = pageOfRanking("webhooks", rows, pageRequest(query));
        const body: Shown<typeof shapes.statsWebhooksShape> = {
          ...shownRange(within),
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
  if (name) throw invalid(name, "is no filter of this list: nothing is counted under both");
}

function shownRange({ from, to, zone }: Range) {
  return { from: isoTime(from), to: isoTime(to), timezone: zone.name };
}

function mailBody(within: Range, totals: Totals): Shown<typeof shapes.statsSummaryShape> {
  return { ...shownRange(within), ...mailPart(totals), formulas: rates.mailFormulas };
}

function mailPart(t: Totals) {
  return { totals: mailTotalsView(t), rates: rates.mailRates(t) };
}

function bouncesBody(
  within: Range,
  page: ReturnType<typeof pageOfRanking>,
  all: Totals,
): Shown<typeof shapes.statsBouncesShape> {
  const part = (t: Totals) => ({
    totals: { bounced: t.bounced, bounced_hard: t.bouncedHard, bounced_soft: t.bouncedSoft },
    rates: rates.bounceRates(t, all),
  });
  const show = ({ key, totals }: Counted) => {
    const cause = key as Classification; // written by events/record.ts only
    return { key: cause, bounce_category: bounceCategories[cause], ...part(totals) };
  };
  return { ...shownRange(within), ...part(all), formulas: rates.bounceFormulas, ...listBody(page, show) };
}

function webhookPart(t: Totals) {
  return { totals: webhookTotalsView(t), rates: rates.webhookRates(t) };
}
