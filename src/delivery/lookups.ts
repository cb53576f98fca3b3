// Limits the DNS look-ups of one attempt: at most five hosts, whatever their results, and half a minute for all of them
// together, so that a domain with thousands of MX hosts on a silent name server gets no more of our time than another.
// A look-up that is not awaited continues, and the next attempt finds its answer in the resolver's cache.
import type { Clock } from "../clock.ts";
import type { MailHost } from "../dns/mx.ts";

export const maxHostsLookedUp = 5;
const allHostsMs = 30_000;
/** Of a host that others come after. */
const oneHostMs = 6_000;

/**
 * Which of `hosts`, in their order, an attempt looks up: all up to five; of more the first four and, since their look-ups
 * may fail every time, one of the others by chance. `until`: the host that the list ends with, if it is there.
 */
export function hostsToLookUp(
  hosts: MailHost[],
  until: string,
  random: () => number,
): { hosts: MailHost[]; complete: boolean } {
  if (hosts.length <= maxHostsLookedUp) return { hosts, complete: true };
  const end = hosts.findIndex(({ host }) => host === until);
  const usable = end === -1 ? hosts : hosts.slice(0, end + 1);
  if (usable.length <= maxHostsLookedUp) return { hosts: usable, complete: true };
  const first = usable.slice(0, maxHostsLookedUp - 1);
  const rest = usable.slice(maxHostsLookedUp - 1);
  const one = rest[Math.floor(random() * rest.length)];
  return { hosts: one ? [...first, one] : first, complete: false };
}

/** The time of an attempt for its look-ups. */
export class LookupTime {
  #leftMs = allHostsMs;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The result of `lookUp`, or null when the time is used up; the last host may use all that is left. */
  async waitFor<T>(lookUp: () => Promise<T>, last: boolean): Promise<T | null> {
    const limitMs = last ? this.#leftMs : Math.min(this.#leftMs, oneHostMs);
    if (limitMs <= 0) return null;
    const begun = this.#clock.monotonic();
    const { promise: ended, resolve } = Promise.withResolvers<null>();
    const timer = this.#clock.after(limitMs, () => resolve(null));
    try {
      return await Promise.race([lookUp(), ended]);
    } finally {
      timer.cancel();
      this.#leftMs -= this.#clock.monotonic() - begun;
    }
  }
}
