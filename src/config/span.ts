// Spans of time as people write them: `30s`, `5m`, `48h`, `3d`, `1h30m`. Shared by
// svc.yaml and by the command line (`--since 24h`).

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export const spanPattern = /^(?:\d{1,9}(?:\.\d{1,3})?(?:ms|s|m|h|d))+$/;
const part = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

/** Milliseconds of a span, null where the text is none. At most ten years. */
export function parseSpan(text: string): number | null {
  if (!spanPattern.test(text)) return null;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(part))
    totalMs += Number(amount) * unitMs[unit as keyof typeof unitMs];
  const longest = 3660 * unitMs.d;
  return totalMs <= longest ? Math.round(totalMs) : null;
}

/** The shortest exact form: 5400000 → `90m`. */
export function spanText(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const)
    if (ms !== 0 && ms % unitMs[unit] === 0) return `${ms / unitMs[unit]}${unit}`;
  return `${ms}ms`;
}
