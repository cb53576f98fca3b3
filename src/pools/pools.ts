// The IP pools of all accounts in memory: the addresses of a pool, which of them are usable, and which pool a message
// uses. Reloaded after each change, so that no message needs a query to the store. Checks each address at the start,
// when it is added and every minute: whether this machine has it, and less often its PTR record. Notifies the operator
// when mail waits because a pool has no usable address (reports.ts). The rows are written by the store.
import { hourMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import { defaultPool, type AddressLook, type Pool, type PoolAddress } from "../model/ip-pool.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { canBind } from "./bind.ts";
import { checkEhloName } from "./ehlo.ts";
import { lookUpPtr } from "./ptr.ts";
import { createWarmupCounts, type WarmupCounts } from "./warmup-counts.ts";
import { dayOf, overBefore } from "./warmup.ts";
import { problemOf, type PoolProblem } from "./problems.ts";
import { createProblemReports } from "./reports.ts";
import { isUsable, sourcesOf, systemSources, type PoolSources } from "./sources.ts";

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

interface Entry {
  pool: Pool;
  sources: PoolSources;
}

interface AccountPools {
  byName: Map<string, Entry>;
  defaultName: string;
}

/** How long a PTR result is kept; less while it is wrong, since the operator may be correcting it. */
const ptrKeptMs = hourMs;
const badPtrKeptMs = 300_000;
/** PTR look-ups of one round; the rest waits for the next. */
const ptrLooksMost = 50;
const ptrLooksAtOnce = 10;

export function createPools(deps: PoolsDeps): Pools & HasJobs {
  const { store, clock, log } = deps;
  const bindable = deps.canBind ?? canBind;
  const accounts = new Map<number, AccountPools>();
  const warmups = createWarmupCounts(clock);
  let usable = new Set<string>();
  const reports = createProblemReports(deps.hostname, log);
  /** When the PTR record of an address and its name was looked up, on the monotonic clock. */
  const askedAt = new Map<string, number>();
  const listeners: (() => void)[] = [];
  let looking: Promise<void> | null = null;
  let again = false;

  const entriesOf = (account: AccountPools | undefined): Entry[] => [...(account?.byName.values() ?? [])];
  const all = (): Pool[] => [...accounts.values()].flatMap(entriesOf).map(({ pool }) => pool);
  const addresses = (): PoolAddress[] => all().flatMap((pool) => pool.addresses);

  /** The listeners hear of all accounts at once: each looks at the whole queue. */
  const refresh = async (accountKeys: Iterable<number>): Promise<void> => {
    try {
      for (const accountKey of accountKeys) await reread(accountKey);
    } finally {
      const now = addresses().filter(isUsable);
      usable = new Set(now.map(({ address }) => address));
      for (const listener of listeners) listener();
    }
  };

  const reread = async (accountKey: number): Promise<void> => {
    const pools = await store.listPools(accountKey);
    for (const { pool } of entriesOf(accounts.get(accountKey)))
      if (!pools.some(({ name }) => name === pool.name)) reports.forget(pool);
    if (pools.length === 0) accounts.delete(accountKey);
    else
      accounts.set(accountKey, {
        byName: new Map(
          pools.map((pool) => [pool.name, { pool, sources: sourcesOf(pool, deps.drainListed) }] as const),
        ),
        defaultName: pools.find(({ isDefault }) => isDefault)?.name ?? defaultPool,
      });
    pools.forEach(reports.note);
  };

  /** What is known of each address, and what this machine says of it now. */
  const lookAtBinds = async (): Promise<{ seen: Seen; looks: Map<string, AddressLook> }> => {
    const seen: Seen = new Map(addresses().map((address) => [address.address, address]));
    const looks = new Map<string, AddressLook>();
    for (const { address, ptr, ptrOk } of seen.values())
      looks.set(address, { address, bindable: await bindable(address), ptr, ptrOk });
    await save(looks, seen);
    return { seen, looks };
  };

  const lookOnce = async (): Promise<void> => {
    const { seen, looks } = await lookAtBinds();
    const asked = new Set([...seen.values()].map(askedKey));
    for (const key of askedAt.keys()) if (!asked.has(key)) askedAt.delete(key);
    const due = [...seen.values()].filter(isPtrDue).slice(0, ptrLooksMost);
    for (let from = 0; from < due.length; from += ptrLooksAtOnce)
      await Promise.all(due.slice(from, from + ptrLooksAtOnce).map((address) => lookAtPtr(address, looks)));
    await save(looks, seen);
    all().forEach(reports.note);
  };

  const ehloName = ({ hostname }: PoolAddress): string => hostname ?? deps.hostname;
  const askedKey = (address: PoolAddress): string => `${address.address} ${ehloName(address)}`;

  const isPtrDue = (address: PoolAddress): boolean => {
    const asked = askedAt.get(askedKey(address));
    const keptMs = address.ptrOk === true ? ptrKeptMs : badPtrKeptMs;
    return asked === undefined || clock.monotonic() - asked >= keptMs;
  };

  const lookAtPtr = async (of: PoolAddress, looks: Map<string, AddressLook>): Promise<void> => {
    const { address } = of;
    askedAt.set(askedKey(of), clock.monotonic());
    const found = await lookUpPtr(deps.resolver, address, ehloName(of));
    const look = looks.get(address);
    // Where only the name's address could not be looked up, what was known of it stands.
    if (found && look) looks.set(address, { ...look, ptr: found.ptr, ptrOk: found.ptrOk ?? look.ptrOk });
  };

  /** Writes what is not as it was; `seen` is kept up, so that nothing is written twice. */
  const save = async (looks: Map<string, AddressLook>, seen: Seen): Promise<void> => {
    const changed = [...looks.values()].filter((look) => {
      const was = seen.get(look.address);
      return was?.bindable !== look.bindable || was.ptr !== look.ptr || was.ptrOk !== look.ptrOk;
    });
    if (changed.length === 0) return;
    await store.saveLooks(changed, clock.now());
    for (const look of changed) {
      const was = seen.get(look.address);
      if (was) seen.set(look.address, { ...was, ...look });
    }
    await refresh(accounts.keys());
  };

  const look = (): Promise<void> => {
    if (looking) {
      again = true;
      return looking;
    }
    looking = (async () => {
      do {
        again = false;
        await lookOnce();
      } while (again);
    })().finally(() => (looking = null));
    return looking;
  };

  const lookSoon = (): void => {
    look().catch((error: unknown) => log.error({ err: error }, "checking the pools' addresses failed"));
  };

  const endWarmups = async (): Promise<void> => {
    const at = clock.now();
    const ended = await store.endWarmups({ startedBefore: overBefore(at), day: dayOf(at), at });
    if (ended.length === 0) return;
    log.info({ addresses: ended }, "the warm-up of addresses has ended; they send without caps");
    await refresh(accounts.keys());
  };

  return {
    name: "pools",
    async start() {
      warmups.load(await store.warmupCounts(dayOf(clock.now())));
      await refresh(await store.accountsWithPools());
      await lookAtBinds();
      reports.begin();
      all().forEach(reports.note);
    },
    async stop() {
      await looking?.catch(() => undefined); // reported to the caller that asked
    },
    nameFor(accountKey, name) {
      const account = accounts.get(accountKey);
      if (name === null) return account?.defaultName ?? defaultPool;
      return name === defaultPool || account?.byName.has(name) === true ? name : null;
    },
    names: (accountKey) => [...(accounts.get(accountKey)?.byName.keys() ?? [defaultPool])],
    all,
    sourcesOf: (accountKey, pool) => accounts.get(accountKey)?.byName.get(pool)?.sources ?? systemSources,
    addressesOf: (accountKey) =>
      entriesOf(accounts.get(accountKey)).flatMap(({ pool }) => pool.addresses.map(({ address }) => address)),
    warmups,
    warmupOf: warmups.today,
    mayUse: (address) => usable.has(address),
    problems: () => all().flatMap((pool) => problemOf(pool, deps.hostname) ?? []),
    noteWaiting(accountKey, name) {
      const entry = accounts.get(accountKey)?.byName.get(name);
      if (entry) reports.noteWaiting(entry.pool);
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

type Seen = Map<string, PoolAddress>;
