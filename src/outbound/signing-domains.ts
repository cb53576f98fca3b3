// What a message needs of the domain that signs it: its active DKIM keys, and where its tracked links lead. Read again
// after a second, so that a burst of mail does not read the same row for each message.
import type { Clock } from "../clock.ts";
import type { SigningKey } from "../mail/dkim.ts";
import type { Store } from "../store/store.ts";
import { trackingBase } from "../tracking/base.ts";

export interface SigningDomain {
  /** None: the domain is gone, or nothing of it may sign. */
  keys: SigningKey[];
  /** `https://name` */
  trackingBase: string;
}

export type SigningDomains = (accountKey: number, name: string | null) => Promise<SigningDomain>;

const keptMs = 1_000;
const mostKept = 10_000;

export function createSigningDomains(
  store: Pick<Store, "domainByName">,
  clock: Pick<Clock, "monotonic">,
  publicUrl: string,
): SigningDomains {
  const kept = new Map<string, { readAt: number; domain: Promise<SigningDomain> }>();
  const none: SigningDomain = { keys: [], trackingBase: trackingBase(null, publicUrl) };
  const read = async (accountKey: number, name: string): Promise<SigningDomain> => {
    const found = await store.domainByName(accountKey, name);
    if (!found) return none;
    const keys = found.dkimKeys
      .filter((key) => key.status === "active")
      .map(({ selector, algorithm, privatePem }) => ({ domain: name, selector, algorithm, privatePem }));
    return { keys, trackingBase: trackingBase(found, publicUrl) };
  };
  return (accountKey, name) => {
    if (name === null) return Promise.resolve(none);
    const id = `${accountKey}/${name}`;
    const before = kept.get(id);
    if (before && clock.monotonic() - before.readAt < keptMs) return before.domain;
    if (kept.size > mostKept) kept.clear();
    const domain = read(accountKey, name);
    domain.catch(() => kept.delete(id));
    kept.set(id, { readAt: clock.monotonic(), domain });
    return domain;
  };
}
