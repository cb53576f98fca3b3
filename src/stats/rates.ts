// The rates that are computed from the counters, each with its formula. A rate with the denominator zero is null.
import type { Totals } from "../model/counters.ts";

export const mailFormulas = {
  delivery_rate: "delivered / (delivered + bounced)",
  bounce_rate: "bounced / (delivered + bounced)",
  complaint_rate: "complained / delivered",
  open_rate: "unique_opened / delivered; opens by machines are not unique ones",
  click_rate: "unique_clicked / delivered; clicks by machines are not unique ones",
} as const;

export const bounceFormulas = {
  bounce_rate: "bounced for this cause / (delivered + bounced for any cause)",
} as const;

export const webhookFormulas = { success_rate: "delivered / attempts" } as const;

export type Rates<Formulas> = { [Name in keyof Formulas]: number | null };

export function mailRates(t: Totals): Rates<typeof mailFormulas> {
  const ended = t.delivered + t.bounced;
  return {
    delivery_rate: rate(t.delivered, ended),
    bounce_rate: rate(t.bounced, ended),
    complaint_rate: rate(t.complained, t.delivered),
    open_rate: rate(t.uniqueOpened, t.delivered),
    click_rate: rate(t.uniqueClicked, t.delivered),
  };
}

/** `all`: what was sent and ended in the same range. */
export function bounceRates(t: Totals, all: Totals): Rates<typeof bounceFormulas> {
  return { bounce_rate: rate(t.bounced, all.delivered + all.bounced) };
}

export function webhookRates(t: Totals): Rates<typeof webhookFormulas> {
  return { success_rate: rate(t.delivered, t.attempts) };
}

function rate(of: number, among: number): number | null {
  return among === 0 ? null : of / among;
}
