// The limits of an account or API key, as its owner's resource shows and takes them: rates by bucket, and the messages of a
// day.
import { z } from "zod";
import { accountBuckets } from "../../access/buckets.ts";
import type { Limits } from "../../model/limits.ts";
import { viewOf } from "../codec.ts";

const rateSchema = z.strictObject({ burst: z.int().min(1), per_second: z.int().min(1) });
const rateView = viewOf(rateSchema);

/** Fields of what is shown. */
export const limitsShown = {
  rates: z
    .partialRecord(z.enum(accountBuckets), rateSchema)
    .describe("The rates that differ from the default, by bucket.")
    .meta({ id: "Rates" }),
  daily_quota: z.int().min(0).nullable().describe("Messages accepted in one day (UTC); null: no limit."),
};

/** What a view of them transforms. */
export const limitViews = {
  rates: ({ rates }: Pick<Limits, "rates">): z.input<typeof limitsShown.rates> =>
    Object.fromEntries(Object.entries(rates).map(([bucket, rate]) => [bucket, rateView(rate)])),
};

const rate = (what: string) =>
  z.number(`is a whole number of ${what} from 1 to 1000000`).int().min(1).max(1_000_000).describe(what);

/** What a bucket is raised to; null: the rate of everybody again. */
const oneRate = z
  .strictObject({ burst: rate("requests at once"), per_second: rate("requests a second") })
  .transform(({ burst, per_second: perSecond }) => ({ burst, perSecond }))
  .nullable();

/** Limits of an account or key, as a change: what is left out stays as it is. */
export function limitFields<Bucket extends string>(buckets: readonly Bucket[]) {
  return {
    rates: z
      .partialRecord(z.enum(buckets), oneRate)
      .optional()
      .describe("By bucket; null restores the default rate."),
    daily_quota: z
      .int("is a whole number of messages")
      .min(0)
      .max(1_000_000_000)
      .nullable()
      .optional()
      .describe("Messages accepted in one day (UTC); null: no limit."),
  };
}
