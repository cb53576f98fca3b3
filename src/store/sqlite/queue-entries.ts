// What an operator does with recipients in the queue. Each act is given row ids and changes those that are as it wants
// them by then: what an attempt has in its hands, or is final, is left alone.
import type { Database, Statement } from "better-sqlite3";
import type { FailedRecipient, ScheduledQueue } from "../../model/queue-entry.ts";
import { packEvent } from "../event-packing.ts";
import type { Tally } from "../batch-counters.ts";
import { decodeCursor, encodeCursor } from "../../cursor.ts";
import { kindOf, pageAt, pageOf } from "../cursor.ts";
import type { QueueEntryStore } from "../interface/queue-entries.ts";
import { holderOf, isHeld, operatorHolderOf } from "./held-mail.ts";
import { noun, none, type Writing } from "./noun.ts";
import { jobsOfClaim, type ClaimedMessage, type ClaimedRecipient } from "../claimed.ts";
import { messageForAttempt } from "./queue.ts";
import { createQueueLists } from "./queue-lists.ts";
import { queuePosition } from "./queue-walk.ts";

interface Act {
  accountKey: number;
  keys: number[];
  at: number;
}

function createQueueActs(db: Database, tally: Tally, recordEvent: Writing["recordEvent"]) {
  const mine = "key = @key AND account_key = @accountKey";
  const unsent = `(due_at IS NOT NULL OR coalesce(${isHeld}, 0))`;
  type One = Omit<Act, "keys"> & { key: number };
  const retry: Statement<[One], ScheduledQueue> = db.prepare(
    `UPDATE recipients SET due_at = @at WHERE ${mine} AND due_at > @at AND state <> 'scheduled'
     RETURNING queue_name AS queueName, due_at AS dueAt`,
  );
  // Not due yet: `held_since` keeps when it is, so that a release before that changes nothing.
  const hold = db.prepare(
    `UPDATE recipients SET held_since = coalesce(held_since, max(due_at, @at)), due_at = NULL, lease_owner = @operator
     WHERE ${mine} AND (due_at IS NOT NULL OR lease_owner = @account)`,
  );
  const release: Statement<[One & { operator: string }], ScheduledQueue> = db.prepare(
    `UPDATE recipients SET due_at = held_since, held_ms = held_ms + max(0, @at - held_since), lease_owner = NULL, held_since = NULL
     WHERE ${mine} AND lease_owner = @operator RETURNING queue_name AS queueName, due_at AS dueAt`,
  );
  const cancel: Statement<[One], { bytes: number }> = db.prepare(
    `UPDATE recipients SET state = 'canceled', due_at = NULL, lease_owner = NULL, held_since = NULL, updated_at = @at
     WHERE ${mine} AND ${unsent} RETURNING share_bytes AS bytes`,
  );
  const fail: Statement<[Omit<FailedRecipient, "event"> & { eventAt: number }], { bytes: number }> =
    db.prepare(
      `UPDATE recipients SET state = 'bounced', due_at = NULL, lease_owner = NULL, held_since = NULL, updated_at = @at, last_event_at = @eventAt,
       smtp_code = @smtpCode, smtp_status = @smtpStatus, smtp_response = @smtpResponse
     WHERE key = @recipientKey AND account_key = @accountKey AND ${unsent} RETURNING share_bytes AS bytes`,
    );

  const moved = (keys: number[], one: (key: number) => ScheduledQueue | undefined) => {
    const queues = new Map<string, number>();
    let changed = 0;
    for (const key of keys) {
      const to = one(key);
      if (!to) continue;
      changed += 1;
      queues.set(to.queueName, Math.min(to.dueAt, queues.get(to.queueName) ?? to.dueAt));
    }
    return { changed, scheduledQueues: [...queues].map(([queueName, dueAt]) => ({ queueName, dueAt })) };
  };

  return {
    retryQueued: ({ keys, ...act }: Act) => moved(keys, (key) => retry.get({ ...act, key })),
    holdQueued({ keys, ...act }: Act): number {
      const holders = { account: holderOf(act.accountKey), operator: operatorHolderOf(act.accountKey) };
      return keys.reduce((sum, key) => sum + hold.run({ ...act, ...holders, key }).changes, 0);
    },
    releaseQueued({ keys, ...act }: Act) {
      const operator = operatorHolderOf(act.accountKey);
      return moved(keys, (key) => release.get({ ...act, operator, key }));
    },
    deleteQueued({ keys, ...act }: Act): number {
      let changed = 0;
      for (const key of keys) {
        const canceled = cancel.get({ ...act, key });
        if (!canceled) continue;
        changed += 1;
        tally.change(act.accountKey, -1, -canceled.bytes);
      }
      return changed;
    },
    failQueued(failed: FailedRecipient[]): number {
      let changed = 0;
      for (const { event, ...one } of failed) {
        const bounced = fail.get({ ...one, eventAt: event.occurredAt });
        if (!bounced) continue;
        changed += 1;
        tally.change(one.accountKey, -1, -bounced.bytes);
        recordEvent(event);
      }
      return changed;
    },
  };
}

function createJobRows(db: Database) {
  const recipient: Statement<[number, number], ClaimedRecipient> = db.prepare(
    `SELECT key, message_key AS messageKey, rcpt_to AS rcptTo, canonical, to_address AS "to", domain, queue_name AS queueName,
       attempts AS attempt, last_event_at AS lastEventAt, held_ms AS heldMs FROM recipients WHERE key = ? AND account_key = ?`,
  );
  const message: Statement<[number], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE key = ?`);
  return ({ accountKey, keys }: { accountKey: number; keys: number[] }) => {
    const recipients = keys.flatMap((key) => recipient.get(key, accountKey) ?? []);
    const messages = [...new Set(recipients.map(({ messageKey }) => messageKey))];
    return { recipients, messages: messages.flatMap((key) => message.get(key) ?? []) };
  };
}

export const queueEntries = noun({
  commands: (db: Database, { tally, recordEvent }: Writing) => createQueueActs(db, tally, recordEvent),
  touches: {
    retryQueued: (touch, { accountKey }) => touch(accountKey, "messages"),
    holdQueued: (touch, { accountKey }) => touch(accountKey, "messages"),
    releaseQueued: (touch, { accountKey }) => touch(accountKey, "messages"),
    deleteQueued: (touch, { accountKey, at }) => touch(accountKey, "messages", at),
    failQueued(touch, failed) {
      for (const { accountKey, at } of failed) {
        touch(accountKey, "messages", at);
        touch(accountKey, "events", at);
      }
    },
  },
  lookups: none,
  lists: (db: Database) => ({ ...createQueueLists(db), queuedJobs: createJobRows(db) }),
  calls: ({ write, lists, clock }): QueueEntryStore => ({
    async listQueue(accountKey, filter, parts, page) {
      const kind = kindOf("q", filter);
      const at = pageAt(kind, page, [...queuePosition]);
      return pageOf(kind, await lists.listQueue({ accountKey, filter, parts, page: at, now: clock.now() }));
    },
    async countQueue(accountKey, by, filter, parts, cursor) {
      const kind = kindOf("qc", filter);
      const after = decodeCursor(kind, cursor, [...queuePosition]);
      const look = { accountKey, by, filter, parts, after, now: clock.now() };
      const { groups, next } = await lists.countQueue(look);
      return { groups, next: next === null ? null : encodeCursor(kind, next) };
    },
    retryQueued: (accountKey, keys, at) => write.retryQueued({ accountKey, keys, at }),
    holdQueued: (accountKey, keys, at) => write.holdQueued({ accountKey, keys, at }),
    releaseQueued: (accountKey, keys, at) => write.releaseQueued({ accountKey, keys, at }),
    deleteQueued: (accountKey, keys, at) => write.deleteQueued({ accountKey, keys, at }),
    failQueued: (failed) => write.failQueued(failed.map((one) => ({ ...one, event: packEvent(one.event) }))),
    queuedJobs: async (accountKey, keys) => jobsOfClaim(await lists.queuedJobs({ accountKey, keys })),
  }),
});
