// A store as a contract is given it.
import { afterAll, beforeAll } from "vitest";
import type { Job } from "../../../src/model/queued-recipient.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, beginBoot, newMessage, owner } from "../values.ts";

export interface OpenedStore {
  store: Store;
  clock: ManualClock;
  close(): Promise<void>;
}

/** Opens an empty store. */
export type OpenStore = () => Promise<OpenedStore>;

/** What contracts do with mail, whichever noun they are about. */
interface Rig {
  /** A domain that no other test of the contract uses. */
  freshDomain(): string;
  /** An accepted recipient, leased as if there were a slot: `ann@` a fresh domain. */
  one(to?: string): Promise<Job>;
  stateOf(job: Job): Promise<string | undefined>;
}

/** One store for all tests of a contract, with the boot `owner`; `account`: the key of the first account. */
export function beforeAllOpened(
  open: OpenStore,
  begin: (opened: { store: Store; clock: ManualClock; account: number }) => void,
): Rig {
  let opened: OpenedStore;
  let account: number;
  let count = 0;
  beforeAll(async () => {
    opened = await open();
    const { store, clock } = opened;
    account = (await store.accountByName("default"))?.key ?? 0;
    await beginBoot(store, owner);
    begin({ store, clock, account });
  });
  afterAll(() => opened.close());
  const freshDomain = (): string => `d${++count}.test`;
  return {
    freshDomain,
    async one(to = `ann@${freshDomain()}`) {
      const { store, clock } = opened;
      const message = newMessage({ accountKey: account, to: [to], at: clock.now(), lease: true });
      const [job] = await accept(store, message);
      if (!job) throw new Error("no job");
      return job;
    },
    stateOf: async (job) => (await opened.store.message(account, job.message.id))?.recipients[0]?.state,
  };
}
