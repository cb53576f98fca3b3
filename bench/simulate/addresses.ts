// The addresses that mail leaves from. All of them are warm: a receiver takes as much from each from the first minute on.
// This is the place for warm-up: what an address may send in a day, by its age and the provider, is decided by the pool's
// code, and `sources` is to answer what that lets through; receivers.ts is to take less from a younger address.
import type { Source } from "../../src/pools/sources.ts";

export function addressesOf(count: number): readonly Source[] {
  return Array.from({ length: count }, (_, i) => ({
    address: `192.0.2.${i + 1}`,
    hostname: null,
    weight: 1,
    warmingSince: null,
  }));
}
