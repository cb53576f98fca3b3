// Which types of event an endpoint gets: those that it names, or every type, those of later versions too. The store keeps
// a bit a type, and for every type all bits; its fan-out compares them.
import { everyEvent } from "../model/webhook.ts";
import { eventCatalog, eventTypes, type EventType } from "./catalog.ts";

/** Stands for every type. Beside names it means the same. */
export const everyType = "*";

/** What a subscription may name. */
export const subscribable = [...eventTypes, everyType] as const;
export type Subscription = (typeof subscribable)[number];

/** Left out: every type. */
export function eventMask(names: readonly Subscription[] = [everyType]): number {
  return names.reduce((mask, name) => mask | (name === everyType ? everyEvent : eventCatalog[name].bit), 0);
}

export function isEveryType(mask: number): boolean {
  return mask === everyEvent;
}

/** The types of this version that a subscription covers. */
export function eventTypesOf(mask: number): EventType[] {
  return eventTypes.filter((type) => (mask & eventCatalog[type].bit) !== 0);
}
