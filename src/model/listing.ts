// What the blocklists in the DNS (DNSBLs, RFC 5782) say of the addresses that mail leaves from.

/** What a look-up found. `unknown`: no answer, or one that says nothing about the address. */
export const listingAnswers = ["listed", "not_listed", "unknown"] as const;
export type ListingAnswer = (typeof listingAnswers)[number];

/** What is done with an address that is listed. */
export const listingActions = ["none", "drain"] as const;

/** An address at a zone. */
export interface Listing {
  /** As receivers see it: public. */
  address: string;
  zone: string;
  /** Of the last look-up. */
  answer: ListingAnswer;
  /** Why that is unknown. */
  detail: string | null;
  lookedAt: number;
  /** Of the last look-up that found it, in order. */
  codes: string[];
  reason: string | null;
  /** When it was found first; null: it is not listed. */
  listedAt: number | null;
  /** When a look-up contradicted `listedAt` first, if none agreed with it since. */
  changedAt: number | null;
}

/** A code or a range of them: `127.0.0.2`, `127.0.0.4-127.0.0.7`. */
export const codeRangePattern =
  /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?:-127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3})?$/;

/** A zone as the operator names it; null: as the program knows it, or by default. */
export interface NamedZone {
  zone: string;
  name: string | null;
  codes: string[] | null;
  removalUrl: string | null;
}

/** What the operator changed of the zones of the configuration. */
export interface ZoneChange extends NamedZone {
  /** False: it is not asked. */
  watched: boolean;
}

/** Of an address in a pool: the zones that list it. */
export interface AddressBlacklists {
  address: string;
  zones: string[];
}
