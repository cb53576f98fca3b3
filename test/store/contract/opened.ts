// A store as a contract is given it.
import { afterAll, beforeAll } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";

export interface OpenedStore {
  store: Store;
  clock: ManualClock;
  close(): Promise<void>;
}

/** Opens an empty store. */
export type OpenStore = () => Promise<OpenedStore>;

/** One store for all tests of a contract; `account`: the key of the first account. */
export function beforeAllOpened(
  open: OpenStore,
  begin: (opened: { store: Store; clock: ManualClock; account: number }) => void,
): void {
  let opened: OpenedStore;
  beforeAll(async () => {
    opened = await open();
    const { store, clock } = opened;
    begin({ store, clock, account: (await store.accountByName("default"))?.key ?? 0 });
  });
  afterAll(() => opened.close());
}
