// The addresses that our own host name resolves to. Behind 1:1 NAT no interface has them, and an MX of another name (a
// CNAME or a second A record) leads to them: mail sent there would come back to us (RFC 5321 §5.1). They are kept in this
// node's memory and looked up again every five minutes, so that no attempt waits for the DNS because of them, except the
// first.
// Names that accounts give to addresses of their pools do not count: an account could point one at another's MX.
import type { Clock } from "../clock.ts";
import { hostAddresses } from "../dns/mx.ts";
import type { Resolver } from "../dns/resolver.ts";

const refreshMs = 300_000;
const retryMs = 30_000;
/** The first attempts wait this long; a name server that does not answer delays mail no longer than that. */
const firstWaitMs = 2_000;

export interface OwnAddresses {
  has(address: string): boolean;
  /** `refresh` is to be called before `has`. */
  due(): boolean;
  /** Resolves at once where older answers are known. */
  refresh(): Promise<void>;
}

export function createOwnAddresses({
  resolver,
  hostname,
  clock,
}: {
  resolver: Resolver;
  hostname: string;
  clock: Clock;
}): OwnAddresses {
  const name = hostname.toLowerCase();
  let known: ReadonlySet<string> = new Set();
  let dueAt = -Infinity;
  let answered = false;
  let first: Promise<void> | null = null;

  /** Never rejects: a failed look-up delays no mail, and is repeated. */
  const lookUp = async (): Promise<void> => {
    dueAt = clock.monotonic() + retryMs;
    const found = await hostAddresses(resolver, name).catch(() => ({ kind: "failed" as const }));
    answered = true;
    if (found.kind === "failed") return;
    const addresses = found.kind === "addresses" ? found.addresses.map(({ address }) => address) : [];
    // Where one family could not be looked up, what was known of it stays.
    const partly = found.kind === "addresses" && found.missing !== undefined;
    known = new Set(partly ? [...known, ...addresses] : addresses);
    if (!partly) dueAt = clock.monotonic() + refreshMs;
  };

  return {
    has: (address) => known.has(address),
    due: () => !answered || clock.monotonic() >= dueAt,
    refresh() {
      if (first === null) first = withinWait(clock, lookUp());
      else if (clock.monotonic() >= dueAt) void lookUp();
      return first;
    },
  };
}

async function withinWait(clock: Clock, lookUp: Promise<void>): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(firstWaitMs, resolve);
  await Promise.race([lookUp, ended]);
  timer.cancel();
}
