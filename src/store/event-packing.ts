// An event as it is stored, made on the loop.
import type { NewEvent } from "../model/event.ts";
import { storableJson, storableOrNull } from "./storable-text.ts";

export function packEvent(event: NewEvent): NewEvent {
  return {
    ...event,
    recipient: storableOrNull(event.recipient),
    facts: storableJson(event.facts),
    body: storableJson(event.body),
  };
}
