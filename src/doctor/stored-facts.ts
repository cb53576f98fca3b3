// What the checks read in the store, of all accounts. Each is read once a run of the doctor, however many checks want it.
import { setImmediate as nextTurn } from "node:timers/promises";
import { dayMs, type Clock } from "../clock.ts";
import type { Account } from "../model/account.ts";
import type { SenderDomain } from "../model/domain.ts";
import type { Store } from "../store/store.ts";
import type { StoreFacts, World } from "./check.ts";

export type FactsStore = Pick<
  Store,
  "listAccounts" | "listDomains" | "listEndpoints" | "statsTotals" | "health" | "queueCounts"
>;

export interface StoredFacts extends Pick<World, "queue" | "failingEndpoints" | "rates"> {
  domains(): Promise<SenderDomain[]>;
  store(): Promise<StoreFacts>;
}

const accountsMost = 1_000;
const ratesDays = 7;

/** Of PRAGMA synchronous, by number. */
const synchronousNames = ["OFF", "NORMAL", "FULL", "EXTRA"];

export function createStoredFacts(store: FactsStore, clock: Clock): StoredFacts {
  let known: Promise<Account[]> | null = null;
  const accounts = (): Promise<Account[]> => (known ??= allAccounts(store));
  /** Reads by key run on the loop: one account's at a time. */
  const ofEach = <T>(read: (account: Account) => Promise<T[]>): (() => Promise<T[]>) => {
    const all = async (): Promise<T[]> => {
      const found: T[] = [];
      for (const account of await accounts()) {
        found.push(...(await read(account)));
        await nextTurn();
      }
      return found;
    };
    let once: Promise<T[]> | null = null;
    return () => (once ??= all());
  };
  const endpoints = ofEach(async ({ key, name }) =>
    (await store.listEndpoints(key)).map((endpoint) => ({ ...endpoint, account: name })),
  );

  return {
    domains: ofEach(({ key }) => store.listDomains(key)),
    async store() {
      const { engine, writable, full } = await store.health();
      return {
        journalMode: String(engine["journal_mode"]),
        synchronous: synchronousNames[Number(engine["synchronous"])] ?? String(engine["synchronous"]),
        walBytes: Number(engine["wal_bytes"] ?? 0),
        writable,
        full,
      };
    },
    queue: store.queueCounts,
    async failingEndpoints() {
      return (await endpoints())
        .filter(({ active, consecutiveFailures }) => active && consecutiveFailures > 0)
        .map(({ account, id, consecutiveFailures: failures, lastSuccessAt }) => ({
          account,
          id,
          failures,
          lastSuccessAt,
        }));
    },
    async rates() {
      const range = { from: clock.now() - ratesDays * dayMs, to: clock.now(), test: false };
      const found: Awaited<ReturnType<World["rates"]>> = [];
      for (const { key, name } of await accounts()) {
        const { delivered, bouncedHard, complained } = await store.statsTotals(key, range);
        found.push({ account: name, rates: { delivered, bouncedHard, complained } });
      }
      return found;
    },
  };
}

async function allAccounts(store: Pick<Store, "listAccounts">): Promise<Account[]> {
  const { rows } = await store.listAccounts({ limit: accountsMost, cursor: null });
  return rows;
}
