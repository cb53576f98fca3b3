// The delay that a receiver asks for in the words of a temporary refusal: greylisting, "try again in 300 seconds".

/** A longer delay that a receiver names is cut to this. */
export const longestNamedDelayMs = 3_600_000;
const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };
const inUnits =
  /(?:again|retry|later|come back|wait|delay(?:ed)?)\b[^.\d]{0,40}(\d{1,6}) ?(s|m|h)(?:ec(?:ond)?s?|in(?:ute)?s?|(?:ou)?rs?)?\b/i;
const asClock = /(?:again|retry|later|come back|wait)\b[^.\d]{0,40}(\d{1,2}):(\d\d):(\d\d)\b/i;

/** A delay that the receiver names ("try again in 300 seconds"), in milliseconds, at most an hour; else null. */
export function namedDelayMs(text: string): number | null {
  const lower = text.slice(0, 2_000);
  const clock = asClock.exec(lower);
  const named = inUnits.exec(lower);
  let delayMs = 0;
  if (clock !== null) delayMs = (Number(clock[1]) * 3_600 + Number(clock[2]) * 60 + Number(clock[3])) * 1_000;
  else if (named !== null) delayMs = Number(named[1]) * (unitMs[(named[2] ?? "").toLowerCase()] ?? 0);
  return delayMs > 0 ? Math.min(delayMs, longestNamedDelayMs) : null;
}
