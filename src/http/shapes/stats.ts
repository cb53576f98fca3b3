// What /v1/stats/* answers.
import { z } from "zod";
import { bounceCategories, type Classification } from "../../model/classification.ts";
import { bounceFormulas, mailFormulas, webhookFormulas } from "../../stats/rates.ts";
import { granularities } from "../../stats/zone.ts";
import { bounceTotals, mailTotals, webhookTotals } from "../totals.ts";
import { idOf, timestamp } from "./common.ts";

const rate = z.number().min(0).nullable().describe("null where its denominator is 0.");
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

const range = {
  from: timestamp.describe("From when was counted: what was asked for, widened to a quarter of an hour."),
  to: timestamp.describe("Until before when."),
  timezone: z.string().meta({ examples: ["Europe/Berlin"] }),
};

const formulas = <Formulas extends Record<string, string>>(of: Formulas) =>
  z.strictObject(
    Object.fromEntries(Object.keys(of).map((name) => [name, z.string()])) as Record<
      keyof Formulas & string,
      z.ZodString
    >,
  );

const mail = { ...range, totals: mailTotals, rates: mailRates, formulas: formulas(mailFormulas) };

export const statsSummaryShape = z.strictObject(mail).meta({ id: "Stats" });

export const statsTimeseriesShape = z
  .strictObject({
    ...mail,
    granularity: z.enum(granularities),
    data: z.array(
      z.strictObject({
        start: timestamp.describe(
          "The begin of the period; at the edges of the range a part of it is counted.",
        ),
        totals: mailTotals,
        rates: mailRates,
      }),
    ),
  })
  .meta({ id: "StatsTimeseries" });

const page = { has_more: z.boolean(), next_cursor: z.string().nullable() };
const other = "`(other)` holds what is beyond the first 1,000 of a day.";

export const statsListShape = z
  .strictObject({
    ...mail,
    data: z.array(z.strictObject({ key: z.string().describe(other), totals: mailTotals, rates: mailRates })),
    ...page,
  })
  .meta({ id: "StatsList" });

export const statsBouncesShape = z
  .strictObject({
    ...range,
    totals: bounceTotals,
    rates: bounceRates,
    formulas: formulas(bounceFormulas),
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

export const statsWebhooksShape = z
  .strictObject({
    ...range,
    totals: webhookTotals,
    rates: webhookRates,
    formulas: formulas(webhookFormulas),
    data: z.array(z.strictObject({ key: idOf("whk"), totals: webhookTotals, rates: webhookRates })),
    ...page,
  })
  .meta({ id: "StatsWebhooks" });
