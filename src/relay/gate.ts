// Counts what is open, in all and per source, so that one peer cannot take every place. A source is an
// IPv4 address or the /64 of an IPv6 one (access/networks.ts).
import { sourceOf } from "../access/networks.ts";

export interface Gate {
  /** Takes a place; null where there is none. The answer gives it back (once; later calls do nothing). */
  enter(ip: string): (() => void) | null;
}

export function createGate(limits: { total: number; perSource: number }): Gate {
  const open = new Map<string, number>();
  let total = 0;
  return {
    enter(ip) {
      const source = sourceOf(ip);
      const mine = open.get(source) ?? 0;
      if (total >= limits.total || mine >= limits.perSource) return null;
      total += 1;
      open.set(source, mine + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        total -= 1;
        const left = (open.get(source) ?? 1) - 1;
        if (left > 0) open.set(source, left);
        else open.delete(source);
      };
    },
  };
}
