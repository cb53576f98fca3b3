// Webhook endpoints: their rows, and the calls about them and about deliveries (webhook-deliveries.ts). A discarded backlog
// goes in pieces, so that no transaction grows with it.
import type { Database, Statement } from "better-sqlite3";
import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { failingAfter, type Endpoint, type EndpointChange } from "../../model/webhook.ts";
import { everyone, nothing, removed } from "../changes.ts";
import { pageAt, pageOf } from "../cursor.ts";
import type { EndpointDue, FanOutPiece, WebhookStore } from "../interface/webhooks.ts";
import { assigned, cellsOf, inserted, only, recordOf, selected } from "./columns.ts";
import { mostOf, within, type LimitExceeded } from "../limit.ts";
import { noun, type Writing } from "./noun.ts";
import { discardPiece, inPieces } from "../pieces.ts";
import { endpoints as table } from "./schema/events.ts";
import type { Sequences } from "./sequences.ts";
import {
  createDeliveryLeases,
  createDeliverySettlement,
  createDeliveryTakeBack,
} from "./webhook-deliveries.ts";
import { createFanOutLookups, createFanOutWrites } from "./webhook-fan-out.ts";
import { createDeliveryLists } from "./webhook-delivery-lists.ts";
import { createDeliveryRemoval } from "./webhook-delivery-removal.ts";
import { createReplay, type ReplayedPiece, type ReplayPiece } from "./webhook-replay.ts";

const { placeholder } = sql;

const columns = getTableColumns(table);
const { key: _key, ...written } = columns;

function createEndpointWrites(
  db: Database,
  sequences: Sequences,
  { fanOut }: ReturnType<typeof createFanOutWrites>,
) {
  const insert = db.prepare(`INSERT INTO endpoints ${inserted(columns)}`);
  const countOf: Statement<[number], { n: number }> = db.prepare(
    "SELECT count(*) AS n FROM endpoints WHERE account_key = ?",
  );
  const find: Statement<[string, number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE id = ? AND account_key = ?",
  );
  const read: Statement<[number], Endpoint> = db.prepare(
    `SELECT ${selected(columns)} FROM endpoints WHERE key = ?`,
  );
  const rotate = db.prepare(
    `UPDATE endpoints SET previous_secret = iif(@previousUntil IS NULL, NULL, secret), previous_secret_until = @previousUntil,
       secret = @secret, updated_at = @at WHERE key = @key`,
  );
  const remove = db.prepare("DELETE FROM endpoints WHERE key = ?");
  const dropPending = db.prepare(
    `DELETE FROM deliveries WHERE endpoint_key = @key AND event_seq IN
       (SELECT event_seq FROM deliveries INDEXED BY deliveries_due WHERE endpoint_key = @key AND due_at IS NOT NULL LIMIT @limit)`,
  );
  // What all endpoints have in flight at once is bounded.
  const dropInFlight = db.prepare(
    `DELETE FROM deliveries WHERE endpoint_key = @key AND event_seq IN
       (SELECT event_seq FROM deliveries INDEXED BY deliveries_leased WHERE lease_owner IS NOT NULL AND endpoint_key = @key)`,
  );
  const discardPending = (key: number, limit: number): number => {
    dropInFlight.run({ key });
    return dropPending.run({ key, limit }).changes;
  };

  const endpointOf = (key: number): Endpoint | null => {
    const row = read.get(key);
    return row ? recordOf(columns, row) : null;
  };

  return {
    createEndpoint({
      most = Infinity,
      ...endpoint
    }: Omit<Endpoint, "key"> & { most?: number }): number | LimitExceeded {
      const has = countOf.get(endpoint.accountKey)?.n ?? 0;
      if (has >= most) return { over: has };
      const key = sequences.next("endpoints");
      insert.run(cellsOf(columns, { ...endpoint, key }));
      return key;
    },
    /** Answers the endpoint as it is then; null: it is gone. A backlog that is discarded goes in pieces before this. */
    updateEndpoint(arg: {
      accountKey: number;
      key: number;
      change: EndpointChange;
      discardBacklog: boolean;
    }): Endpoint | null {
      const cells = cellsOf(written, arg.change);
      db.prepare(`UPDATE endpoints SET ${assigned(only(written, cells))} WHERE key = @key`).run({
        ...cells,
        key: arg.key,
      });
      if (arg.discardBacklog) {
        // Also what came since those pieces: what is still to be queued would bring back what is discarded here.
        let before: FanOutPiece | null = null;
        do before = fanOut({ accountKey: arg.accountKey, before });
        while (before !== null);
        discardPending(arg.key, -1);
      }
      return endpointOf(arg.key);
    },
    rotateSecret(arg: {
      accountKey: number;
      key: number;
      secret: string;
      previousUntil: number | null;
      at: number;
    }): Endpoint | null {
      rotate.run(arg);
      return endpointOf(arg.key);
    },
    /** A piece of the backlog; answers how many went. */
    discardBacklog(arg: { accountKey: number; key: number }): number {
      return discardPending(arg.key, discardPiece);
    },
    /** The endpoint itself: from here on nothing is fanned out to it or claimed for it. Answers its key. */
    deleteEndpoint(arg: { accountKey: number; id: string }): number | null {
      const row = find.get(arg.id, arg.accountKey);
      if (!row) return null;
      remove.run(row.key);
      return row.key;
    },
  };
}

function createEndpointLookups(client: Database) {
  const db = drizzle({ client });
  const endpointByKey = db
    .select()
    .from(table)
    .where(eq(table.key, placeholder("key")))
    .prepare();
  const endpointById = db
    .select()
    .from(table)
    .where(and(eq(table.id, placeholder("id")), eq(table.accountKey, placeholder("accountKey"))))
    .prepare();
  const endpointsOf = db
    .select()
    .from(table)
    .where(eq(table.accountKey, placeholder("accountKey")))
    .orderBy(asc(table.createdAt), asc(table.key))
    .prepare();
  // One seek an endpoint that has something pending.
  const nextEndpoint: Statement<[number], { endpointKey: number; dueAt: number }> = client.prepare(
    `SELECT endpoint_key AS endpointKey, due_at AS dueAt FROM deliveries INDEXED BY deliveries_due
     WHERE due_at IS NOT NULL AND endpoint_key > ? ORDER BY endpoint_key, due_at LIMIT 1`,
  );
  const activeOf: Statement<[number], { accountKey: number; failures: number }> = client.prepare(
    "SELECT account_key AS accountKey, consecutive_failures AS failures FROM endpoints WHERE key = ? AND active = 1",
  );
  const nextRetry: Statement<[number], { dueAt: number }> = client.prepare(
    `SELECT due_at AS dueAt FROM deliveries INDEXED BY deliveries_due
     WHERE endpoint_key = +? AND due_at > 0 ORDER BY due_at LIMIT 1`,
  );

  return {
    ...createFanOutLookups(client),
    endpointByKey: (key: number) => endpointByKey.get({ key }) ?? null,
    endpoint: (accountKey: number, id: string) => endpointById.get({ accountKey, id }) ?? null,
    endpoints: (accountKey: number) => endpointsOf.all({ accountKey }),
    endpointsDue(): EndpointDue[] {
      const due: EndpointDue[] = [];
      for (let next = nextEndpoint.get(0); next; next = nextEndpoint.get(next.endpointKey)) {
        const active = activeOf.get(next.endpointKey);
        if (!active) continue;
        const both = next.dueAt === 0 && active.failures >= failingAfter;
        const retryAt = both ? (nextRetry.get(next.endpointKey)?.dueAt ?? null) : null;
        due.push({ ...next, ...active, retryAt });
      }
      return due;
    },
  };
}

export const webhooks = noun({
  commands(db: Database, { tally, sequences }: Writing) {
    const fanOut = createFanOutWrites(db, tally);
    return {
      ...createEndpointWrites(db, sequences, fanOut),
      ...createDeliveryLeases(db),
      ...createDeliverySettlement(db, tally),
      ...createDeliveryTakeBack(db),
      ...createDeliveryRemoval(db),
      ...createReplay(db),
      ...fanOut,
    };
  },
  touches: {
    createEndpoint: (touch, { accountKey, updatedAt }) => touch(accountKey, "webhooks", updatedAt),
    updateEndpoint(touch, { accountKey, change, discardBacklog }) {
      touch(accountKey, "webhooks", change.updatedAt);
      if (discardBacklog) touch(accountKey, "events");
    },
    rotateSecret: (touch, { accountKey, at }) => touch(accountKey, "webhooks", at),
    deleteEndpoint(touch, { accountKey }) {
      touch(accountKey, "webhooks", removed);
      touch(accountKey, "events", removed);
    },
    requeueDeliveries(touch, { deliveries }) {
      for (const { accountKey } of deliveries) touch(accountKey, "events");
    },
    takeBackDeliveries: (touch) => touch(everyone, "events"),
    fanOut: (touch, { accountKey }) => touch(accountKey, "events"),
    dropAttempts: nothing,
    dropDeliveries: nothing, // they went from sight with their endpoint
    discardBacklog: (touch, { accountKey }) => touch(accountKey, "events"),
    replayDeliveries: (touch, { accountKey }) => touch(accountKey, "events"),
    claimDeliveries(touch, { now }, result) {
      const [first] = result?.deliveries ?? [];
      if (first) touch(first.accountKey, "events", now);
    },
    settleDeliveries(touch, results) {
      for (const { accountKey, at } of results) {
        touch(accountKey, "events", at);
        touch(accountKey, "webhooks", at);
      }
    },
  },
  lookups: createEndpointLookups,
  lists: createDeliveryLists,
  calls: ({ write, ahead, lookups, lists, after, dropDeliveries }): WebhookStore => ({
    async createEndpoint(endpoint, most) {
      const key = within(await write.createEndpoint({ ...endpoint, ...mostOf(most) }));
      return { ...endpoint, key };
    },
    endpoint: async (accountKey, id) => lookups.endpoint(accountKey, id),
    endpointByKey: async (key) => lookups.endpointByKey(key),
    listEndpoints: async (accountKey) => lookups.endpoints(accountKey),
    async updateEndpoint(accountKey, id, change, { discardBacklog = false } = {}) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      const { key } = endpoint;
      if (discardBacklog) {
        // What is still to be queued for it is a part of it.
        const last = lookups.lastToFanOut(accountKey);
        let before: FanOutPiece | null = null;
        do before = await ahead.fanOut({ accountKey, before });
        while (before !== null && (before.seq < last || before.endpointKey !== null));
        await inPieces(() => ahead.discardBacklog({ accountKey, key }));
      }
      return write.updateEndpoint({ accountKey, key, change, discardBacklog });
    },
    async rotateSecret(accountKey, id, rotation) {
      const endpoint = lookups.endpoint(accountKey, id);
      return endpoint && write.rotateSecret({ accountKey, key: endpoint.key, ...rotation });
    },
    async replayDeliveries(accountKey, id, which, at) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      let total = 0;
      let from: number | null = 0;
      while (from !== null) {
        const piece: ReplayPiece = { accountKey, endpointKey: endpoint.key, which, afterSeq: from, at };
        const done: ReplayedPiece = await ahead.replayDeliveries(piece);
        total += done.queued;
        from = done.next;
      }
      return total;
    },
    async deleteEndpoint(accountKey, id) {
      const key = await write.deleteEndpoint({ accountKey, id });
      if (key === null) return false;
      await after(() => dropDeliveries(key));
      return true;
    },
    accountsToFanOut: async () => lookups.accountsToFanOut(),
    fanOut: (accountKey, before) => write.fanOut({ accountKey, before }),
    endpointsDue: async () => lookups.endpointsDue(),
    claimDeliveries: (claim) => write.claimDeliveries(claim),
    settleDeliveries: (results) => write.settleDeliveries(results),
    requeueDeliveries: (deliveries, at, { counted = false } = {}) =>
      write.requeueDeliveries({
        at,
        counted,
        deliveries: deliveries.map(({ accountKey, endpointKey, eventSeq, owner, attempt }) => ({
          accountKey,
          endpointKey,
          eventSeq,
          owner,
          attempt,
        })),
      }),
    takeBackDeliveries: (owner, now) => write.takeBackDeliveries({ owner, now }),
    async listDeliveries(accountKey, id, filter, page) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      const at = pageAt("d", page, ["number", "number", "number"]);
      return pageOf(
        "d",
        await lists.listDeliveries({ accountKey, endpointKey: endpoint.key, filter, page: at }),
      );
    },
  }),
});
