// What an outcome changes, in one transaction: the recipient, the attempt, the event with its webhook rows, the
// suppression and the inbox copy. A recipient that is final stays as it is: a second outcome writes nothing. Nor does that of
// an attempt whose lease was lost, except a delivery: the mail must not be sent again.
import type { Database, Statement } from "better-sqlite3";
import type { NewEvent } from "../../model/event.ts";
import type { NewSuppression, NxdomainRecheck } from "../../model/suppression.ts";
import type { WarmupSend } from "../../model/warmup.ts";
import type { Tally } from "../batch-counters.ts";
import type { QueueStore } from "../interface/queue.ts";
import { packSettlement, type PackedSettlement } from "../settlement-packing.ts";
import { none, noun, type Writing } from "./noun.ts";

export interface SettlementParts {
  recordEvent(event: NewEvent): void;
  addSuppression(entry: NewSuppression, at: number): unknown;
  addNxdomainRecheck(look: NxdomainRecheck): void;
  countWarmup(send: WarmupSend): void;
}

export function createSettlementWrites(db: Database, tally: Tally, parts: SettlementParts) {
  // Values by place: a name costs as much as its value's binding, and there are thirty of them a message.
  const update = (attempted: string): Statement<unknown[], { bytes: number }> =>
    db.prepare(
      `UPDATE recipients SET state = ?, attempts = ?, updated_at = ?, last_event_at = ?, due_at = ?,
         smtp_code = ?, smtp_status = ?, smtp_response = ?, ${attempted} lease_owner = NULL, held_since = NULL
       WHERE key = ? AND ((lease_owner = ? AND attempts = ?)
         OR (? = 'delivered' AND (due_at IS NOT NULL OR lease_owner IS NOT NULL))) RETURNING share_bytes AS bytes`,
    );
  const updateAttempted = update(
    "last_attempt_at = ?, receiving_mta = ?, sending_ip = ?, provider = ?, tls = ?,",
  );
  const updateUntried = update("");
  const updated = (s: PackedSettlement): { bytes: number } | undefined => {
    const outcome = [
      s.outcome,
      s.attempts,
      s.at,
      s.eventAt,
      s.dueAt,
      s.smtpCode,
      s.smtpStatus,
      s.smtpResponse,
    ];
    const where = [s.recipientKey, s.owner, s.attempt, s.outcome];
    return s.tried === 1
      ? updateAttempted.get(...outcome, s.startedAt, s.host, s.sendingIp, s.provider, s.tls, ...where)
      : updateUntried.get(...outcome, ...where);
  };
  const insertAttempt = db.prepare(
    `INSERT INTO attempts (id, message_key, recipient_key, attempt, started_at, ended_at, sending_ip, host, address, tls,
       ambiguous, decided_by, outcome, smtp_code, smtp_status, smtp_response, next_attempt_at, trace)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const keepAttempt = (s: PackedSettlement): void => {
    const { attemptId, messageKey, recipientKey, attempt, startedAt, endedAt, ambiguous, decidedBy } = s;
    const route = [s.sendingIp, s.host, s.address, s.tls, ambiguous, decidedBy];
    const reply = [s.outcome, s.smtpCode, s.smtpStatus, s.smtpResponse, s.dueAt, s.trace];
    insertAttempt.run(attemptId, messageKey, recipientKey, attempt, startedAt, endedAt, ...route, ...reply);
  };
  const catchMail = db.prepare(
    `INSERT INTO inbox (account_key, message_key, to_address, caught_at)
     SELECT account_key, message_key, to_address, @at FROM recipients WHERE key = @recipientKey`,
  );

  return {
    settle(s: PackedSettlement): boolean {
      if (s.warmup) parts.countWarmup(s.warmup); // it was sent, whatever became of the lease
      const settled = updated(s);
      if (!settled) return false;
      if (s.dueAt === null) tally.change(s.accountKey, -1, -settled.bytes);
      if (s.tried === 1) keepAttempt(s);
      parts.recordEvent(s.event);
      if (s.suppression) parts.addSuppression(s.suppression, s.at);
      if (s.nxdomainRecheck) parts.addNxdomainRecheck(s.nxdomainRecheck);
      if (s.catchInInbox) catchMail.run(s);
      return true;
    },
  };
}

export const settlements = noun({
  commands: (db: Database, { tally, ...parts }: Writing) => createSettlementWrites(db, tally, parts),
  touches: {
    settle(touch, { accountKey, at, suppression, catchInInbox, warmup }, result) {
      if (warmup) touch(accountKey, "ip_pools");
      if (result === false) return;
      touch(accountKey, "messages", at);
      touch(accountKey, "events", at);
      if (suppression) touch(accountKey, "suppressions", at);
      if (catchInInbox) touch(accountKey, "inbox", at);
    },
  },
  lookups: none,
  lists: none,
  calls: ({ write }): Pick<QueueStore, "settle"> => ({
    settle: (settlement) => write.settle(packSettlement(settlement)),
  }),
});
