// What an attack is to the bench: prepared in the bench's own process, carried out in a process of its own, looked at
// afterwards. What passes between the processes is plain JSON.
import type { Sections, Stand, Target } from "./stand.ts";

/** Figures of a row beside those that every row has. */
export type Facts = Record<string, string | number>;

/** What `prepare` hands to `run`: ids, keys, return paths. */
export type Given = Record<string, string>;

export interface Attack {
  name: string;
  /** One line: who does what. */
  title: string;
  config?: Sections;
  /** How long it takes to come to its full strength; measured from then on. */
  rampSeconds?: number;
  /** Before the base is measured. */
  prepare?(stand: Stand): Promise<Given>;
  /** In a process of its own, until `signal` is aborted or there is nothing left to do. */
  run(target: Target, given: Given, signal: AbortSignal): Promise<Facts>;
  /** When it is over; the product may be gone. */
  after?(stand: Stand, given: Given): Promise<Facts>;
}

/** CLOCK_MONOTONIC in milliseconds: the same in every process. */
export const nowMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;
