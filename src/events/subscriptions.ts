// Which types of event an endpoint gets, as the store keeps it (a bit a type: the fan-out asks for it in SQL) and as the
// API shows it: a list of types, or ["*"] for every type, those of later versions too.
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

/** As it is shown. */
export function subscriptionOf(mask: number): Subscription[] {
  return mask === everyEvent ? [everyType] : eventTypesOf(mask);
}

/** The types of this version that a subscription holds. */
export function eventTypesOf(mask: number): EventType[] {
  return eventTypes.filter((type) => (mask & eventCatalog[type].bit) !== 0);
}
