// When a certificate is ordered: renewed at two thirds of its life, a little earlier by a share of its own so that not all
// come at once, or when the server wants it (RFC 9773); after a failure later each time; and never more often than is
// polite. Let's Encrypt's limits (5 failed checks a name and hour, 5 certificates of the same names a week, 50 of a
// registered domain a week, 300 orders in 3 hours) are not reached. Pure.
import { createHash } from "node:crypto";
import { dayMs, hourMs, minuteMs } from "../../clock.ts";
import type { CertificatePair } from "../files.ts";

/** Waits after failures in a row; the last one repeats. */
const retryMs = [15 * minuteMs, hourMs, 4 * hourMs, 12 * hourMs, dayMs, dayMs, dayMs, 7 * dayMs];
/** The host's own is tried each day at least: mail needs it. */
const hostRetryMs = dayMs;
/** The server itself fails: no name is tried meanwhile. */
const directoryRetryMs = [5 * minuteMs, 15 * minuteMs, hourMs, 4 * hourMs, 6 * hourMs];

/** Orders within a day. The host's own certificate is outside of these, and has limits of its own. */
export const mostOrders = { ofAll: 1_000, ofAccount: 50 };
/** Orders of a name that the operator asks for. */
const asked = { anHour: 4, aWeek: 4 };
export const weekMs = 7 * dayMs;

type Life = Pick<CertificatePair, "validFrom" | "validUntil" | "cert">;

export function retryAt(failedAt: number, failures: number, isHost: boolean, askedMs: number): number {
  const wait = waitOf(retryMs, failures);
  return failedAt + Math.max(isHost ? Math.min(wait, hostRetryMs) : wait, askedMs);
}

export function directoryRetryAt(failedAt: number, failures: number, askedMs: number): number {
  return failedAt + Math.max(waitOf(directoryRetryMs, failures), askedMs);
}

/** By two thirds of its life, give or take: the same at each look. */
export function renewAt({ validFrom, validUntil, cert }: Life): number {
  const life = validUntil - validFrom;
  return Math.round(validFrom + (life * 2) / 3 - (life / 30) * shareOf(cert));
}

/**
 * Within the window that the server suggests. It cannot have a certificate expire, nor have us order one more than once a
 * day, or a quarter of its life where that is shorter.
 */
export function renewAtOf(life: Life, window: { from: number; until: number }): number {
  const { validFrom, validUntil, cert } = life;
  const span = validUntil - validFrom;
  const wanted = window.from + (window.until - window.from) * shareOf(cert);
  const earliest = validFrom + Math.min(dayMs, span / 4);
  return Math.round(Math.min(Math.max(wanted, earliest), validUntil - span / 6));
}

/** After a success: a server whose certificates expire at once is not asked in a loop. */
export function againAt({ validFrom, validUntil }: Life, now: number): number {
  return now + Math.max(5 * minuteMs, Math.min(hourMs, (validUntil - validFrom) / 4));
}

/** Until when the operator has to wait with an order of this name; null: not at all. */
export function askedTooOften(
  { failed, issued }: { failed: readonly number[]; issued: readonly number[] },
  now: number,
): number | null {
  const within = (times: readonly number[], ms: number, most: number): number | null => {
    const recent = times.filter((at) => at > now - ms && at <= now);
    return recent.length < most ? null : (recent[recent.length - most] ?? now) + ms;
  };
  const waits = [within(failed, hourMs, asked.anHour), within(issued, weekMs, asked.aWeek)];
  const until = Math.max(...waits.map((at) => at ?? 0));
  return until > 0 ? until : null;
}

function waitOf(waits: readonly number[], failures: number): number {
  return waits[Math.min(failures, waits.length) - 1] ?? 0;
}

/** From 0 to 1, by the certificate. */
function shareOf(cert: string): number {
  return createHash("sha256").update(cert).digest().readUInt32BE(0) / 2 ** 32;
}
