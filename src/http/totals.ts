// The totals of the statistics as the API shows them, made of the catalogue of counters (model/counters.ts).
import { z } from "zod";
import { counters, countersIn, type Counter, type CounterOf, type TotalsKind } from "../model/counters.ts";
import { viewOf } from "./codec.ts";

type Snake<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : Name;
type Fields<Of extends TotalsKind> = { [Name in CounterOf<Of> as Snake<Name>]: z.ZodInt };

function totalsSchema<Of extends TotalsKind>(of: Of) {
  const fields = countersIn(of).map((name) => {
    const { meaning }: Counter = counters[name];
    const count = z.int().min(0);
    return [snake(name), meaning === undefined ? count : count.describe(meaning)];
  });
  return z.strictObject(Object.fromEntries(fields) as Fields<Of>);
}

export const mailTotals = totalsSchema("mail").meta({ id: "StatsTotals" });
export const webhookTotals = totalsSchema("webhooks").meta({ id: "StatsWebhookTotals" });
export const bounceTotals = mailTotals
  .pick({ bounced: true, bounced_hard: true, bounced_soft: true })
  .meta({ id: "StatsBounceTotals" });

export const mailTotalsView = viewOf(mailTotals);
export const bounceTotalsView = viewOf(bounceTotals);
export const webhookTotalsView = viewOf(webhookTotals);

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
