// How many lines of one kind are written: a flood of mail or of refused logins must neither fill the disk nor push out what
// matters. Lines of one text share a bucket; of those that name an address, each source has a share of it, so that one attacker does
// not hide others. What is left out is counted, and said once it is over or every ten seconds.
import type { Clock, Timer } from "../clock.ts";

export interface LineLimiter {
  /** Whether one more line of this text may be written. `source`: whoever caused it, an IPv4 address or a /64 (model/ip-source.ts); null: nobody did. */
  takes(text: string, rate: LineRate, source: string | null): boolean;
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
/** The oldest goes: whoever comes from more addresses than this is held back by the bucket of the text alone. */
const mostSources = 10_000;
/** Of what a text may have. */
const shareOfSource = 0.1;

export function createLineLimiter(
  clock: Clock,
  onLeftOut: (text: string, lines: number) => void,
): LineLimiter {
  const buckets = new Map<string, Bucket>();
  let timer: Timer | null = null;

  /** By text and address, the one that was made first in front. */
  const sources = new Map<string, Bucket>();

  const say = (): void => {
    timer?.cancel();
    timer = null;
    for (const [text, bucket] of buckets) {
      if (bucket.leftOut > 0) onLeftOut(text, bucket.leftOut);
      bucket.leftOut = 0;
    }
  };

  const sourceBucket = (id: string, { burst, perSecond }: LineRate, at: number): Bucket => {
    const rate = { burst: burst * shareOfSource, perSecond: perSecond * shareOfSource };
    let bucket = sources.get(id);
    if (bucket) fill(bucket, rate, at);
    else {
      sources.set(id, (bucket = { tokens: rate.burst, at, leftOut: 0 }));
      const [oldest] = sources.keys();
      if (sources.size > mostSources && oldest !== undefined) sources.delete(oldest);
    }
    return bucket;
  };

  return {
    takes(text, rate, source) {
      const at = clock.monotonic();
      let bucket = buckets.get(text);
      if (!bucket) {
        if (buckets.size >= mostTexts) {
          say();
          buckets.clear();
        }
        buckets.set(text, (bucket = { tokens: rate.burst, at, leftOut: 0 }));
      }
      fill(bucket, rate, at);
      const own = source === null ? null : sourceBucket(`${source} ${text}`, rate, at);
      if (bucket.tokens >= 1 && (own === null || own.tokens >= 1)) {
        bucket.tokens -= 1;
        if (own !== null) own.tokens -= 1;
        return true;
      }
      bucket.leftOut += 1;
      timer ??= clock.after(sayEachMs, say);
      return false;
    },
    flush: say,
  };
}

function fill(bucket: Bucket, { burst, perSecond }: LineRate, at: number): void {
  bucket.tokens = Math.min(burst, bucket.tokens + ((at - bucket.at) / 1000) * perSecond);
  bucket.at = at;
}
