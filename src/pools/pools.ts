// The IP pools of all accounts (pools-in-memory.ts), reloaded after each change, so that no message needs a query to the
// store. The addresses are checked (address-checks.ts) at the start, when one is added and every minute; the operator is
// notified when mail waits because a pool has no usable address (reports.ts). The rows are written by the store.
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import type { Pool } from "../model/ip-pool.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { canBind } from "./bind.ts";
import { checkEhloName } from "./ehlo.ts";
import { createAddressChecks } from "./address-checks.ts";
import { createWarmupCounts, type WarmupCounts } from "./warmup-counts.ts";
import { dayOf, overBefore } from "./warmup.ts";
import { problemOf, type PoolProblem } from "./problems.ts";
import { createProblemReports } from "./reports.ts";
import { createPoolsInMemory } from "./pools-in-memory.ts";
import type { PoolSources } from "./sources.ts";

export interface Pools extends Service {
  /** The pool of a message: the one that it names, else the account's default; null: no pool has that name. */
  nameFor(accountKey: number, name: string | null): string | null;
  names(accountKey: number): string[];
  /** Those of all accounts that have more than `default` without an address. */
  all(): Pool[];
  sourcesOf(accountKey: number, pool: string): PoolSources;
  /** All addresses of an account, usable or not. */
  addressesOf(accountKey: number): string[];
  /** What the addresses that warm up have sent today. */
  warmups: WarmupCounts;
  /** null: it does not warm up. */
  warmupOf: WarmupCounts["today"];
  /** False for an address that is in no pool or is not usable now. */
  mayUse(address: string): boolean;
  /** Pools with addresses that cannot be used, and those without addresses. */
  problems(): PoolProblem[];
  /** Mail of the pool waits, since none of its addresses can be used. */
  noteWaiting(accountKey: number, pool: string): void;
  canBind(address: string): Promise<boolean>;
  /** Throws Refusal if mail from the address may not use the name in EHLO (ehlo.ts). */
  checkEhloName(name: string, address: string): Promise<void>;
  /** Call after each write to an account's pools: reloads them, and checks new addresses soon. */
  changed(accountKey: number): Promise<void>;
  /** Checks every address. A check requested during another one runs after it. */
  look(): Promise<void>;
  /** The same in the background; a failure is logged. */
  lookSoon(): void;
  /** Called when the addresses that mail may leave from have changed. */
  onChange(listener: () => void): void;
  /** Called when mail of a pool waits since no address of it can be used; once for each cause. */
  onProblem(listener: (problem: PoolProblem) => void): void;
}

export interface PoolsDeps {
  store: Pick<Store, "listPools" | "accountsWithPools" | "saveLooks" | "warmupCounts" | "endWarmups">;
  resolver: Pick<Resolver, "ptr" | "a" | "aaaa">;
  /** The EHLO name of addresses without a name of their own. */
  hostname: string;
  /** `dnsbl.on_listing: drain` */
  drainListed?: boolean;
  clock: Clock;
  log: Log;
  canBind?: typeof canBind;
}

export function createPools(deps: PoolsDeps): Pools & HasJobs {
  const { store, clock, log } = deps;
  const bindable = deps.canBind ?? canBind;
  const memory = createPoolsInMemory(deps.drainListed);
  const warmups = createWarmupCounts(clock);
  const reports = createProblemReports(deps.hostname, log);
  const listeners: (() => void)[] = [];

  const { all } = memory;

  /** The listeners hear of all accounts at once: each looks at the whole queue. */
  const refresh = async (accountKeys: Iterable<number>): Promise<void> => {
    try {
      for (const accountKey of accountKeys) await reread(accountKey);
    } finally {
      memory.refreshUsable();
      for (const listener of listeners) listener();
    }
  };

  const reread = async (accountKey: number): Promise<void> => {
    const pools = await store.listPools(accountKey);
    memory.put(accountKey, pools).forEach(reports.forget);
    pools.forEach(reports.note);
  };

  const { checkBinds, look, lookSoon, settled } = createAddressChecks({
    ...deps,
    canBind: bindable,
    addresses: () => all().flatMap((pool) => pool.addresses),
    async onSaved() {
      await refresh(memory.accountKeys());
    },
    onChecked: () => all().forEach(reports.note),
  });

  const endWarmups = async (): Promise<void> => {
    const at = clock.now();
    const ended = await store.endWarmups({ startedBefore: overBefore(at), day: dayOf(at), at });
    if (ended.length === 0) return;
    log.info({ addresses: ended }, "the warm-up of addresses has ended; they send without caps");
    await refresh(memory.accountKeys());
  };

  return {
    name: "pools",
    async start() {
      warmups.load(await store.warmupCounts(dayOf(clock.now())));
      await refresh(await store.accountsWithPools());
      await checkBinds();
      reports.begin();
      all().forEach(reports.note);
    },
    async stop() {
      await settled();
    },
    nameFor: memory.nameFor,
    names: memory.names,
    all,
    sourcesOf: memory.sourcesOf,
    addressesOf: memory.addressesOf,
    warmups,
    warmupOf: warmups.today,
    mayUse: memory.mayUse,
    problems: () => all().flatMap((pool) => problemOf(pool, deps.hostname) ?? []),
    noteWaiting(accountKey, name) {
      const pool = memory.pool(accountKey, name);
      if (pool) reports.noteWaiting(pool);
    },
    canBind: bindable,
    checkEhloName: (name, address) => checkEhloName(deps, name, address),
    async changed(accountKey) {
      await refresh([accountKey]);
      lookSoon();
    },
    look,
    lookSoon,
    onChange: (listener) => void listeners.push(listener),
    onProblem: reports.onProblem,
    jobs: [
      { name: "look-at-addresses", cron: "* * * * *", run: look },
      { name: "end-warmups", cron: "5 * * * *", run: endWarmups },
    ],
  };
}
