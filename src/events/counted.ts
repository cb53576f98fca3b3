// Which counters an event raises, as the mask that the event carries: made of the catalogue once, so that recording an
// event only tests the conditions of its type.
import { counterMask, type CounterName } from "../model/counters.ts";
import type { CountedData, EventEntry } from "./entry.ts";

export interface CounterMasks {
  always: number;
  sometimes: readonly { mask: number; when(data: CountedData): boolean }[];
}

export function countingOf(entry: EventEntry): CounterMasks {
  const counters = Object.entries(entry.about === "recipient" ? entry.counters : {}) as [
    CounterName,
    true | ((data: CountedData) => boolean),
  ][];
  return {
    always: counterMask(counters.flatMap(([name, when]) => (when === true ? [name] : []))),
    sometimes: counters.flatMap(([name, when]) =>
      when === true ? [] : [{ mask: counterMask([name]), when }],
    ),
  };
}

export function countersMask({ always, sometimes }: CounterMasks, data: CountedData): number {
  let mask = always;
  for (const { mask: own, when } of sometimes) if (when(data)) mask |= own;
  return mask;
}
