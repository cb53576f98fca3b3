// The limits of each sending address at each group of destinations: how many attempts run there at once, and how fast
// they begin. Lines of mail that leave from the same address share its gate and are let in by turns; a line whose pool
// has several addresses is let in where there is room, by the addresses' weights.
import type { Clock } from "../clock.ts";
import { chooseByWeight, type Source } from "../pools/sources.ts";
import { createPace, type Pace } from "./pace.ts";
import type { Shaping } from "./shaping.ts";

export interface Gate<Line> {
  pace: Pace;
  /** Attempts that run through it, and slots promised to acceptances. */
  taken: number;
  /** Lines that found it full. */
  waiting: Set<Line>;
}

/** One address that a line may leave from, and its gate. */
export interface Seat<Line> {
  source: Source;
  weight: number;
  gate: Gate<Line>;
}

export interface Gates<Line> {
  /** The gates of these addresses at a group. */
  seats(sources: readonly Source[], group: string): Seat<Line>[];
  readonly size: number;
  /** Forgets the gates that nobody holds and that a new one would be the same as. */
  forget(held: ReadonlySet<Gate<Line>>): void;
}

export function createGates<Line>(shaping: Shaping, clock: Clock): Gates<Line> {
  const gates = new Map<string, Gate<Line>>();
  const gateOf = (address: string | null, group: string): Gate<Line> => {
    const key = address === null ? group : `${group} ${address}`;
    let gate = gates.get(key);
    if (!gate) {
      gate = { pace: createPace(shaping(group), clock), taken: 0, waiting: new Set() };
      gates.set(key, gate);
    }
    return gate;
  };
  return {
    seats: (sources, group) =>
      sources.map((source) => ({ source, weight: source.weight, gate: gateOf(source.address, group) })),
    get size() {
      return gates.size;
    },
    forget(held) {
      for (const [key, gate] of gates)
        if (gate.taken === 0 && !held.has(gate) && gate.pace.rested()) gates.delete(key);
    },
  };
}

const isFull = ({ gate }: Seat<unknown>): boolean => gate.taken >= gate.pace.limit();

/** How many more attempts the seats let in at once. */
export function freeSlots(seats: readonly Seat<unknown>[]): number {
  let free = 0;
  for (const { gate } of seats) free += Math.max(0, gate.pace.limit() - gate.taken);
  return free;
}

/** Takes a slot and its token at one of the seats; null where those that have room have no token yet. */
export function takeSeat<Line>(seats: readonly Seat<Line>[], random: () => number): Seat<Line> | null {
  const [only] = seats;
  const open =
    seats.length < 2 ? seats : seats.filter((seat) => !isFull(seat) && seat.gate.pace.waitMs() === 0);
  const seat = seats.length < 2 ? only : chooseByWeight(open, random());
  if (!seat || isFull(seat) || !seat.gate.pace.take()) return null;
  seat.gate.taken += 1;
  return seat;
}

/** Milliseconds until one of the seats that have room has a token. */
export function tokenWaitMs(seats: readonly Seat<unknown>[]): number {
  const waits = seats.filter((seat) => !isFull(seat)).map(({ gate }) => gate.pace.waitMs());
  return Math.min(...waits, longestWaitMs);
}

const longestWaitMs = 60_000;
