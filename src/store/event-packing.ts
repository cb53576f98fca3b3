// An event as it is stored, made on the loop.
import type { NewEvent } from "../model/event.ts";
import { storableJson } from "./storable-text.ts";

/** The event itself where there is nothing to replace. Its recipient is an address as it was parsed. */
export function packEvent(event: NewEvent): NewEvent {
  const [facts, body] = [storableJson(event.facts), storableJson(event.body)];
  return facts === event.facts && body === event.body ? event : { ...event, facts, body };
}
