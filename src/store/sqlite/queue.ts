// Claims and leases. A recipient that waits has a due time and no lease; one that is leased has no due time, so
// that a row which is inserted leased and then settled touches only the small index of leases. The attempt number is
// raised and written with the lease, before the attempt; where the program ends before the outcome is written, the next
// start of the node records that attempt as interrupted. What a paused account's turn comes to is not leased but put on
// hold (sending-pause.ts).
import type { Database, Statement } from "better-sqlite3";
import { createIdMint } from "../../ids.ts";
import type { Wait } from "../../model/queue.ts";
import { everyone } from "../changes.ts";
import { jobsOfClaim, waitedMs, type ClaimedMessage, type ClaimedRecipient } from "../claimed.ts";
import type { QueueStore } from "../interface/queue.ts";
import { leaseOver } from "./boots.ts";
import { holderOf } from "./held-mail.ts";
import { noun, none } from "./noun.ts";
import { createQueueViews } from "./queue-views.ts";

interface DueRecipient extends ClaimedRecipient {
  dueAt: number;
  accountKey: number;
  /** 1: its account is paused. */
  paused: number | null;
}

const interruptedText = "[local] the server ended during this attempt; it is made again";

/** What one claim holds at most, so that no other write waits long for it. */
const holdMost = 500;

export interface Claim {
  owner: string;
  queueName: string;
  limit: number;
  now: number;
  waits?: readonly Wait[];
}

/** The columns of `messages` under the names of ClaimedMessage. */
export const messageForAttempt = `SELECT key, id, account_key AS accountKey, test, from_address AS "from", signing_domain AS signingDomain,
       return_path_domain AS returnPathDomain, subject, tags AS tagsJson, metadata AS metadataJson, message_id_header AS messageIdHeader,
       ip_pool AS ipPool, size_bytes AS sizeBytes, content_kind AS contentKind, content_name AS contentName, header_length AS headerLength,
       body_hash AS bodyHash, eight_bit AS eightBit, smtp_utf8 AS smtpUtf8, track_opens AS trackOpens, track_clicks AS trackClicks,
       hosted_unsubscribe AS hostedUnsubscribe, queued_at AS queuedAt
     FROM messages`;

export function createQueueWrites(db: Database) {
  // `= +?`, `LIMIT +?`: see webhook-fan-out.ts.
  const due: Statement<[string, number, number], DueRecipient> = db.prepare(
    `SELECT key, message_key AS messageKey, rcpt_to AS rcptTo, canonical, to_address AS "to", domain, queue_name AS queueName, attempts + 1 AS attempt,
       last_event_at AS lastEventAt, held_ms AS heldMs, due_at AS dueAt, account_key AS accountKey,
       (SELECT paused_at IS NOT NULL FROM accounts WHERE key = account_key) AS paused
     FROM recipients INDEXED BY recipients_waiting WHERE queue_name = +? AND due_at <= ? ORDER BY due_at LIMIT +?`,
  );
  const lease = db.prepare(
    "UPDATE recipients SET attempts = attempts + 1, due_at = NULL, lease_owner = ?, updated_at = ? WHERE key = ?",
  );
  const hold = db.prepare(
    "UPDATE recipients SET due_at = NULL, lease_owner = ?, held_since = ? WHERE key = ?",
  );
  const addHeld = db.prepare("UPDATE recipients SET held_ms = held_ms + ? WHERE key = ?");
  const message: Statement<[number], ClaimedMessage> = db.prepare(`${messageForAttempt} WHERE key = ?`);
  const earliest: Statement<[string], { dueAt: number }> = db.prepare(
    "SELECT due_at AS dueAt FROM recipients INDEXED BY recipients_waiting WHERE queue_name = +? AND due_at IS NOT NULL ORDER BY due_at LIMIT 1",
  );
  const release = db.prepare(
    `UPDATE recipients SET attempts = max(0, attempts - 1), due_at = ?, lease_owner = NULL WHERE key = ? AND lease_owner = ?`,
  );
  const mint = createIdMint();
  // A lease is written with its attempt's number, and `updated_at` is when.
  const lost: Statement<[{ owner: string; now: number }], { key: number }> = db.prepare(
    `SELECT key FROM recipients INDEXED BY recipients_leased WHERE ${leaseOver}`,
  );
  const interrupted = db.prepare(
    `INSERT INTO attempts (id, message_key, recipient_key, attempt, started_at, ended_at, ambiguous, decided_by, outcome, smtp_response, next_attempt_at)
     SELECT @id, message_key, key, attempts, min(updated_at, @now), @now, queue_name <> @localQueue, 'restart', 'interrupted', @text, @now
     FROM recipients WHERE key = @key`,
  );
  const takeBack = db.prepare(
    `UPDATE recipients SET due_at = @now, lease_owner = NULL,
       last_attempt_at = min(updated_at, @now), updated_at = @now WHERE key = @key`,
  );

  /** Leases what is due, oldest first. Mail of a paused account that it finds is held, and the claim looks further. */
  const leaseDue = ({ owner, queueName, limit, now, waits = [] }: Claim) => {
    const leased: ClaimedRecipient[] = [];
    const heldOf = new Set<number>();
    for (let held = 0; leased.length < limit && held < holdMost;) {
      const before = held;
      for (const { accountKey, paused, dueAt, ...recipient } of due.all(
        queueName,
        now,
        limit - leased.length,
      )) {
        const waited = waitedMs(waits, dueAt);
        if (waited > 0) addHeld.run(waited, recipient.key);
        if (paused === 1) {
          hold.run(holderOf(accountKey), now, recipient.key);
          heldOf.add(accountKey);
          held += 1;
        } else {
          lease.run(owner, now, recipient.key);
          recipient.heldMs += waited;
          leased.push(recipient);
        }
      }
      if (held === before) break;
    }
    return { leased, heldOf: [...heldOf] };
  };

  return {
    claimDue(claim: Claim): {
      recipients: ClaimedRecipient[];
      messages: ClaimedMessage[];
      nextDueAt: number | null;
      /** Accounts whose mail was held. */
      heldOf: number[];
    } {
      const { leased: recipients, heldOf } = leaseDue(claim);
      const messages = new Map<number, ClaimedMessage>();
      for (const { messageKey } of recipients) {
        if (messages.has(messageKey)) continue;
        const row = message.get(messageKey);
        if (row) messages.set(row.key, row);
      }
      return {
        recipients,
        heldOf,
        messages: [...messages.values()],
        nextDueAt: earliest.get(claim.queueName)?.dueAt ?? null,
      };
    },
    release(arg: { owner: string; recipientKeys: number[]; dueAt: number }): void {
      for (const key of arg.recipientKeys) release.run(arg.dueAt, key, arg.owner);
    },
    takeBackLeases({ owner, now, localQueue }: { owner: string; now: number; localQueue: string }): number {
      const keys = lost.all({ owner, now }).map(({ key }) => key);
      for (const key of keys) {
        interrupted.run({ id: mint("att", now), key, now, localQueue, text: interruptedText });
        takeBack.run({ key, now });
      }
      return keys.length;
    },
  };
}

export const queue = noun({
  commands: createQueueWrites,
  touches: {
    claimDue(touch, { now }, result) {
      for (const { accountKey } of result?.messages ?? []) touch(accountKey, "messages", now);
      for (const accountKey of result?.heldOf ?? []) touch(accountKey, "messages");
    },
    release: (touch) => touch(everyone, "messages"),
    takeBackLeases: (touch) => touch(everyone, "messages"),
  },
  lookups: none,
  lists: createQueueViews,
  calls: ({ write, lists, clock }): Omit<QueueStore, "settle"> => ({
    scheduledQueues: (afterQueue, limit) => lists.scheduledQueues({ afterQueue, limit }),
    async claimDue(claim) {
      const found = await write.claimDue(claim);
      return { jobs: jobsOfClaim(found), nextDueAt: found.nextDueAt };
    },
    release: (owner, recipientKeys, dueAt) => write.release({ owner, recipientKeys, dueAt }),
    takeBackLeases: (owner, now, localQueue) => write.takeBackLeases({ owner, now, localQueue }),
    queueCounts: () => lists.queueCounts({ now: clock.now() }),
  }),
});
