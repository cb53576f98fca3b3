// Whether each zone's answers are believed, as its last test found. A zone is tested before its first look-up, then daily,
// and before a listing counts; one that did not answer again after an interval, an hour at most. Kept in memory: a start tests again, once a
// look-up is due.
import { dayMs, hourMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import { testZone, type ZoneHealth } from "./look.ts";
import type { Zone } from "./zones.ts";

export interface TestedZone {
  health: ZoneHealth;
  /** Wall clock. */
  testedAt: number;
}

export interface ZoneTests {
  /** Of the last test; null: none since the start. */
  last(zone: Zone): TestedZone | null;
  /** The same, tested first where that is due. */
  health(zone: Zone): Promise<ZoneHealth>;
  test(zone: Zone): Promise<ZoneHealth>;
  /** Forgets all others. */
  keep(zones: readonly Zone[]): void;
}

export function createZoneTests(deps: {
  resolver: Pick<Resolver, "a">;
  intervalMs: number;
  clock: Clock;
  log: Log;
}): ZoneTests {
  const { clock, log } = deps;
  const tests = new Map<string, TestedZone & { at: number }>();
  const unknownKeptMs = Math.min(deps.intervalMs, hourMs);

  const test = async (zone: Zone): Promise<ZoneHealth> => {
    const before = tests.get(zone.zone)?.health.status ?? "ok";
    const health = await testZone(deps.resolver, zone);
    tests.set(zone.zone, { health, at: clock.monotonic(), testedAt: clock.now() });
    if (health.status === before) return health;
    if (health.status === "ok") log.info({ zone: zone.zone }, "the blocklist is used again");
    else
      log.warn({ zone: zone.zone, detail: health.detail }, "the blocklist is not used until a test passes");
    return health;
  };

  return {
    last: ({ zone }) => tests.get(zone) ?? null,
    async health(zone) {
      const last = tests.get(zone.zone);
      const keptMs = last?.health.status === "unknown" ? unknownKeptMs : dayMs;
      return last && clock.monotonic() - last.at < keptMs ? last.health : test(zone);
    },
    test,
    keep(zones) {
      for (const name of tests.keys()) if (!zones.some(({ zone }) => zone === name)) tests.delete(name);
    },
  };
}
