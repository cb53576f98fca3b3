// What a message asks of tracking: what its sender wants, else what its domain has as the default. Nothing is tracked
// for a domain where tracking is not enabled; a message that asks for it there is refused (checks.ts), never sent without.
import { isListUnsubscribe, unsubscribeMailto, unsubscribeUrl } from "../mail/list-unsubscribe.ts";
import type { SenderDomain } from "../model/domain.ts";
import { trackingOf, type MessageTracking } from "../model/tracking.ts";
import type { Add, Field, Switch, TrackingRequest, Unsubscribe } from "./shape.ts";

export const untracked: TrackingRequest = { opens: null, clicks: null, unsubscribe: null };

/** `track_opens` and `tracking.opens` are the same; both may be given where they agree. */
export function readSwitch(
  [short, long]: readonly [string, string],
  given: boolean | undefined,
  nested: boolean | undefined,
  add: Add,
): Switch | null {
  if (given !== undefined && nested !== undefined && given !== nested)
    add(long, `is ${nested}, and ${short} is ${given}: give one of them`);
  if (given !== undefined) return { on: given, field: short };
  return nested === undefined ? null : { on: nested, field: long };
}

export function readUnsubscribe(value: Field<"unsubscribe"> | undefined, add: Add): Unsubscribe | null {
  if (value === undefined || value === false) return null;
  if (value === true) return "hosted";
  const { url, mailto } = value;
  if (url === undefined && mailto === undefined) {
    add("unsubscribe", "is empty: give url, mailto or both, or true for a page of this server");
    return null;
  }
  const page = url === undefined ? null : unsubscribeUrl(url);
  const address = mailto === undefined ? null : unsubscribeMailto(mailto);
  if (page?.ok === false) add("unsubscribe.url", page.issue);
  if (address?.ok === false) add("unsubscribe.mailto", address.issue);
  return { url: page?.ok ? page.value : null, mailto: address?.ok ? address.value : null };
}

/** Of two such fields a mail program would read one. */
export function refuseSecond(
  unsubscribe: Unsubscribe | null,
  names: Iterable<string>,
  report: (name: string) => void,
): void {
  if (unsubscribe === null) return;
  for (const name of names) if (isListUnsubscribe(name)) report(name);
}

/** What is kept with the message; null: its recipients all get the same octets. */
export function trackingFor(domain: SenderDomain, asked: TrackingRequest): MessageTracking | null {
  const { trackingEnabled: enabled, trackOpens, trackClicks } = domain;
  return trackingOf(
    enabled && (asked.opens?.on ?? trackOpens),
    enabled && (asked.clicks?.on ?? trackClicks),
    asked.unsubscribe === "hosted",
  );
}
