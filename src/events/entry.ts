// What the catalogue says of a type of event. Everything else about types derives from it: the union of their names, the
// fan-out's bits, the schemas of the API's description, the counters of the statistics, samples, tables of the docs.
import { z } from "zod";
import type { BounceType } from "../model/bounce.ts";
import type { CounterName } from "../model/counters.ts";
import type { RecipientState } from "../model/recipient.ts";

export type Fields = Readonly<Record<string, z.ZodType>>;

/** The values of fields. */
export type ValuesOf<Data extends Fields> = z.input<z.ZodObject<Data>>;

/** What of an event decides which of its conditional counters it raises. */
export interface CountedData {
  bounceType?: BounceType;
  /** Of an open or click: the recipient's first that is not by a machine, or the first by a machine. */
  first?: boolean;
  machine?: boolean;
  /** Of a complaint: false where it does not count for the abuse guard. */
  confirmed?: boolean;
}

interface Described<Data extends Fields> {
  /** A power of two, unlike all others: endpoints' subscriptions are stored by it. It is never used again. */
  bit: number;
  /** What it means, and what it does not. */
  meaning: string;
  /** The fields of its own, in the order in which they are written. */
  data: Data;
  /** Its own data in a webhook's test, at `now`: names and addresses that documentation may use (RFC 2606, RFC 5737). */
  sample(now: number): object;
}

/** Something that happened to a recipient: its data begins with the fields of the message (fields.ts). */
export interface RecipientEvent<Data extends Fields = Fields> extends Described<Data> {
  about: "recipient";
  /** The state of the recipient that it reports; missing if the state is unchanged. */
  state?: RecipientState;
  /** The counters that it raises, each by one, on the day it occurred: always, or on a condition. */
  counters: Readonly<Partial<Record<CounterName, true | ((data: CountedData) => boolean)>>>;
}

/** Something that happened to an address that mail is sent from. */
export interface AddressEvent<Data extends Fields = Fields> extends Described<Data> {
  about: "address";
}

export type EventEntry = RecipientEvent | AddressEvent;
export type EventCatalog = Readonly<Record<string, EventEntry>>;

export function recipientEvent<Data extends Fields>(
  entry: Omit<RecipientEvent<Data>, "about">,
): RecipientEvent<Data> {
  return { about: "recipient", ...entry };
}

export function addressEvent<Data extends Fields>(
  entry: Omit<AddressEvent<Data>, "about">,
): AddressEvent<Data> {
  return { about: "address", ...entry };
}
