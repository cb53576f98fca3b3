// The webhooks room between a store in memory, a clock that is moved by hand and names that a test invents.
import type { Config } from "../../src/config.ts";
import type { DnsAnswer, Resolver } from "../../src/dns/resolver.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createIdMint } from "../../src/ids.ts";
import type { Log } from "../../src/log.ts";
import { silentLog } from "../../src/log.ts";
import type { DeadLetter } from "../../src/webhooks/results.ts";
import { createWebhooks } from "../../src/webhooks/webhooks.ts";
import { ManualClock } from "../support/clock.ts";
import { MemoryStore } from "./memory-store.ts";

export const secret = "0123456789abcdef".repeat(4);
const minute = 60_000;
export const scheduleMs = [
  30_000,
  2 * minute,
  10 * minute,
  30 * minute,
  ...[1, 2, 4, 8, 8].map((hours) => hours * 60 * minute),
];

/** Addresses of names; a name that is missing is NXDOMAIN, null cannot be told. */
export type Names = Record<string, { a?: string[]; aaaa?: string[] } | null>;

export function resolverOf(names: Names): Pick<Resolver, "a" | "aaaa"> {
  const answer = (name: string, family: "a" | "aaaa"): DnsAnswer<string> => {
    const found = names[name];
    if (found === undefined) return { kind: "nxdomain" };
    if (found === null) return { kind: "failed", why: "timeout" };
    const records = found[family];
    return records ? { kind: "found", records, ttlSeconds: 0, authenticated: false } : { kind: "nodata" };
  };
  return { a: async (name) => answer(name, "a"), aaaa: async (name) => answer(name, "aaaa") };
}

export function rig(config: Partial<Config["webhooks"]>, names: Names = {}, clock = new ManualClock()) {
  const store = new MemoryStore();
  const letters: DeadLetter[] = [];
  const failures: string[] = [];
  const log: Log = {
    ...silentLog,
    debug: (fields) => void failures.push(String(fields["failure"])),
    component: () => log,
  };
  const webhooks = createWebhooks({
    store,
    owner: "boot",
    recorder: createRecorder({ clock, mint: createIdMint() }),
    config: { allowNetworks: ["127.0.0.0/8"], caFile: null, scheduleMs, timeoutMs: 10_000, ...config },
    resolver: resolverOf(names),
    clock,
    log,
    onDeadLetter: (letter) => letters.push(letter),
  });
  return { clock, store, letters, failures, webhooks };
}
