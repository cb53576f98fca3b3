// What a look-up changes of what is known of an address at a zone. Two look-ups in a row have to say the same before an
// address counts as listed, or as no longer listed; one whose answer is unknown is none of them, and changes neither. What a
// zone said before it went silent does not count for ever. Pure.
import { dayMs } from "../clock.ts";
import type { Listing } from "../model/listing.ts";
import type { Look } from "./look.ts";

/** Longer than a list is out of service for a repair; receivers do not ask one that is dead. */
const silenceMs = 3 * dayMs;

/**
 * The address is listed, as far as is known. A listing is of no effect once its zone could not be asked for three days, or
 * three intervals of look-ups: nobody could end it.
 */
export function isListedNow(listing: Listing | null, now: number, intervalMs: number): boolean {
  if (listing === null || listing.listedAt === null) return false;
  return now - listing.lookedAt < Math.max(silenceMs, 3 * intervalMs);
}

/** `change`: what the second look-up in a row made of it. */
export interface AfterLook {
  listing: Listing;
  change: "listed" | "delisted" | null;
}

/** `before`: null at the first look-up. `reason` stays as it was. */
export function afterLook(
  before: Listing | null,
  of: Pick<Listing, "address" | "zone">,
  look: Look,
  now: number,
): AfterLook {
  const was = before ?? { ...of, codes: [], reason: null, listedAt: null, changedAt: null };
  const looked = {
    ...was,
    answer: look.answer,
    detail: look.answer === "unknown" ? look.detail : null,
    lookedAt: now,
  };
  if (look.answer === "unknown") return { listing: looked, change: null };
  if (look.answer === "listed") looked.codes = look.codes;
  const isListed = was.listedAt !== null;
  if ((look.answer === "listed") === isListed)
    return { listing: { ...looked, changedAt: null }, change: null };
  if (was.changedAt === null) return { listing: { ...looked, changedAt: now }, change: null };
  return look.answer === "listed"
    ? { listing: { ...looked, listedAt: was.changedAt, changedAt: null }, change: "listed" }
    : { listing: { ...looked, listedAt: null, changedAt: null }, change: "delisted" };
}
