// How many lines of one kind are written: a flood of mail or of refused logins must neither fill the disk nor push out what
// matters. Lines of one text share a bucket; what is left out is counted, and said once it is over or every ten seconds.
import type { Clock, Timer } from "../clock.ts";

export interface LineLimiter {
  /** Whether one more line of this text may be written. */
  takes(text: string, rate: LineRate): boolean;
  /** Says what was left out until now. */
  flush(): void;
}

export interface LineRate {
  burst: number;
  perSecond: number;
}

interface Bucket {
  tokens: number;
  /** Of the clock's monotonic time, milliseconds. */
  at: number;
  leftOut: number;
}

const sayEachMs = 10_000;
/** Texts are the program's own: there are some hundred. */
const mostTexts = 1000;

export function createLineLimiter(
  clock: Clock,
  onLeftOut: (text: string, lines: number) => void,
): LineLimiter {
  const buckets = new Map<string, Bucket>();
  let timer: Timer | null = null;

  const say = (): void => {
    timer?.cancel();
    timer = null;
    for (const [text, bucket] of buckets) {
      if (bucket.leftOut > 0) onLeftOut(text, bucket.leftOut);
      bucket.leftOut = 0;
    }
  };

  return {
    takes(text, { burst, perSecond }) {
      const at = clock.monotonic();
      let bucket = buckets.get(text);
      if (!bucket) {
        if (buckets.size >= mostTexts) {
          say();
          buckets.clear();
        }
        buckets.set(text, (bucket = { tokens: burst, at, leftOut: 0 }));
      }
      bucket.tokens = Math.min(burst, bucket.tokens + ((at - bucket.at) / 1000) * perSecond);
      bucket.at = at;
      if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return true;
      }
      bucket.leftOut += 1;
      timer ??= clock.after(sayEachMs, say);
      return false;
    },
    flush: say,
  };
}
