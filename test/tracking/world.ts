// Tracking over a store on disk, with mail that was sent: what its endpoints are tested against.
import { createRecorder } from "../../src/events/record.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { TokenRecipient } from "../../src/model/tracking.ts";
import type { Store } from "../../src/store/store.ts";
import { openTrackingKeys } from "../../src/tracking/keys.ts";
import { createTrackingTokens, type TrackingTokens } from "../../src/tracking/tokens.ts";
import { createUnsubscribes, type Unsubscribes } from "../../src/tracking/unsubscribes.ts";
import { createVisits, type Visits } from "../../src/tracking/visits.ts";
import { silentLog, type Log } from "../../src/log.ts";
import { accept, mint, newDirectory, newMessage, openSqlite, settlementOf } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

export interface TrackingWorld {
  store: Store;
  clock: ManualClock;
  account: number;
  tokens: TrackingTokens;
  visits: Visits;
  unsubscribes: Unsubscribes;
  /** A message that was delivered to this address. */
  delivered(to?: string, wishes?: { test?: boolean }): Promise<{ job: Job; recipient: TokenRecipient }>;
  /** The events of a message after its delivery: type and data, in their order. */
  eventsOf(messageId: string): Promise<{ type: string; data: Record<string, unknown> }[]>;
  recipientOf(messageId: string): Promise<Record<string, unknown>>;
}

/** `over`: calls of the store that a test replaces. */
export async function trackingWorld(
  over: (store: Store) => Partial<Store> = () => ({}),
  log: Log = silentLog,
): Promise<TrackingWorld> {
  const clock = new ManualClock();
  const store = await openSqlite(newDirectory(), clock);
  const account = (await store.accountByName("default"))?.key ?? 0;
  const recorder = createRecorder({ clock, mint });
  const tokens = createTrackingTokens(await openTrackingKeys({ store, clock }));
  const used = { ...store, ...over(store) };
  const deps = { store: used, recorder, clock, log };
  let count = 0;
  return {
    store,
    clock,
    account,
    tokens,
    visits: createVisits(deps),
    unsubscribes: createUnsubscribes(deps),
    async delivered(to = `Ann@d${++count}.test`, { test = false } = {}) {
      const wanted = newMessage({ accountKey: account, to: [to], at: clock.now(), lease: true });
      const [job] = await accept(store, { ...wanted, message: { ...wanted.message, test } });
      if (!job) throw new Error("no job");
      await store.settle(settlementOf(job, clock.now()));
      const { id: messageId } = job.message;
      return { job, recipient: { accountKey: account, messageId, recipientKey: job.key, email: to, test } };
    },
    async eventsOf(messageId) {
      const { rows } = await store.listEvents(account, { messageId }, { limit: 100, cursor: null });
      return rows
        .filter(({ type }) => type !== "message.delivered")
        .map(({ type, body }) => ({
          type,
          data: (JSON.parse(body) as { data: Record<string, unknown> }).data,
        }));
    },
    async recipientOf(messageId) {
      const record = await store.message(account, messageId);
      return { ...record?.recipients[0] };
    },
  };
}
