// Which counters an event raises, each by one, on the day it occurred. One event is one recipient's, so counts are per
// recipient. A bounce whose kind is not known is a bounce and neither hard nor soft. Loads by machines count among the
// opens and clicks, and not among the unique ones: those are the first that a person made.
import type { BounceType } from "../model/bounce.ts";
import { counterMask, type CounterName } from "../model/counters.ts";
import type { EventType } from "./catalog.ts";

/** What of an event's data decides. */
export interface CountedData {
  bounceType?: BounceType;
  /** Of an open or click: the first of its recipient that is no machine's, or of machines the first. */
  first?: boolean;
  machine?: boolean;
  /** Of a complaint: false where it does not count for the abuse guard. */
  confirmed?: boolean;
}

export function countersOf(type: EventType, data: CountedData = {}): CounterName[] {
  const unique = data.first === true && data.machine !== true;
  switch (type) {
    case "message.delivered":
      return ["delivered"];
    case "message.deferred":
      return ["deferred"];
    case "message.bounced":
      return data.bounceType === "hard"
        ? ["bounced", "bouncedHard"]
        : data.bounceType === "soft"
          ? ["bounced", "bouncedSoft"]
          : ["bounced"];
    case "message.complained":
      return data.confirmed === false ? ["complained", "complainedUnconfirmed"] : ["complained"];
    case "message.unsubscribed":
      return ["unsubscribed"];
    case "message.opened":
      return unique ? ["opened", "uniqueOpened"] : ["opened"];
    case "message.clicked":
      return unique ? ["clicked", "uniqueClicked"] : ["clicked"];
    case "ip.blacklisted":
    case "ip.delisted":
      return [];
  }
}

/** The same as an event carries it. */
export function countersMask(type: EventType, data: CountedData = {}): number {
  return counterMask(countersOf(type, data));
}
