// The mail of a day: when it is accepted and where it goes. All of it is assumed: the mix is of a sender to consumers, the
// curve is of the working day with an evening, and one campaign begins at ten.
import { hourMs, minuteMs } from "../../src/clock.ts";
import { fates } from "./messages.ts";
import { zipf, type Random } from "./random.ts";
import { providerNames, type ProviderName } from "./receivers.ts";

/** Share of the mail by MX group; the rest goes to the long tail. Domains that a provider hosts count as the provider's. */
const mix: Record<ProviderName, number> = { google: 0.4, microsoft: 0.2, yahoo: 0.1, apple: 0.06 };
export const tailDomains = 100_000;

/** Weights of the hours from midnight. */
const hours = [2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 7, 6, 7, 8, 8, 7, 6, 6, 6, 5, 4, 3, 2];
/** A part of the day's mail that is accepted within minutes, beside the curve. */
const campaign = { share: 0.1, from: 10 * 60, minutes: 15 };

const unknownUserShare = 0.005;
const mailboxFullShare = 0.003;

export interface Arrival {
  /** Milliseconds from midnight. */
  at: number;
  /** A provider's index in `providerNames`, or the length of that and the rank of a domain of the tail. */
  domain: number;
  fate: number;
}

/** The messages of the day in the order of their times; the same seed and number give the same ones. */
export function* trafficOf(messages: number, random: Random): Generator<Arrival> {
  const rank = zipf(tailDomains);
  const minutes = messagesByMinute(messages);
  for (const [minute, count] of minutes.entries())
    for (let i = 0; i < count; i++) {
      const at = (minute + (i + random()) / count) * minuteMs;
      yield { at, domain: domainOf(random, rank), fate: fateOf(random()) };
    }
}

export const dayEndMs = 24 * hourMs;

function domainOf(random: Random, rank: (random: Random) => number): number {
  let left = random();
  for (const [i, name] of providerNames.entries()) {
    left -= mix[name];
    if (left < 0) return i;
  }
  return providerNames.length + rank(random);
}

function fateOf(drawn: number): number {
  if (drawn < unknownUserShare) return fates.unknownUser;
  return drawn < unknownUserShare + mailboxFullShare ? fates.mailboxFull : fates.delivered;
}

/** Whole messages a minute whose sum is `messages`. */
function messagesByMinute(messages: number): number[] {
  const ofHours = hours.reduce((sum, weight) => sum + weight, 0);
  const shareOf = (minute: number): number => {
    const within = minute >= campaign.from && minute < campaign.from + campaign.minutes;
    const ofCurve = ((hours[Math.floor(minute / 60)] ?? 0) / ofHours / 60) * (1 - campaign.share);
    return ofCurve + (within ? campaign.share / campaign.minutes : 0);
  };
  let [share, before] = [0, 0];
  return Array.from({ length: 24 * 60 }, (_, minute) => {
    share += shareOf(minute);
    const until = minute === 24 * 60 - 1 ? messages : Math.round(share * messages);
    const count = until - before;
    before = until;
    return count;
  });
}
