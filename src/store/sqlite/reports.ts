// What a report that came back changes: a delivered recipient has bounced after all, or has complained. In one
// transaction with the event and the suppression, and once: a report that says the same again writes nothing. A
// complaint that suppresses is still recorded behind one that could not, so that a forged one hides no true one.
import type { Database, Statement } from "better-sqlite3";
import type { Report, ReportResult } from "../../model/report.ts";
import type { Tally } from "../batch-counters.ts";
import { packEvent } from "../event-packing.ts";
import type { ReportStore } from "../interface/reports.ts";
import { isHeld, isLeased } from "./held-mail.ts";
import { none, noun, type Writing } from "./noun.ts";
import { createSentRows } from "./sent-messages.ts";
import type { SettlementParts } from "./settlement.ts";

interface Standing {
  state: string;
  attempts: number;
  leased: number;
  waits: number;
  complained: number;
  unconfirmed: number;
  accountKey: number;
  bytes: number;
}

export function createReportWrites(
  db: Database,
  tally: Tally,
  parts: Omit<SettlementParts, "addNxdomainRecheck">,
) {
  const standing: Statement<[number, number], Standing> = db.prepare(
    `SELECT state, attempts, coalesce(${isLeased}, 0) AS leased, (due_at IS NOT NULL OR coalesce(${isHeld}, 0)) AS waits, complained_at IS NOT NULL AS complained,
       coalesce(complaint_unconfirmed, 0) AS unconfirmed, account_key AS accountKey, share_bytes AS bytes
     FROM recipients WHERE key = ? AND message_key = ?`,
  );
  const bounce = db.prepare(
    `UPDATE recipients SET state = 'bounced', due_at = NULL, lease_owner = NULL, held_since = NULL, updated_at = @at, last_event_at = @eventAt,
       smtp_code = @smtpCode, smtp_status = @smtpStatus, smtp_response = @smtpResponse WHERE key = @recipientKey`,
  );
  const complain = db.prepare(
    `UPDATE recipients SET complained_at = @at, complaint_unconfirmed = @unconfirmed, updated_at = @at, last_event_at = @eventAt
     WHERE key = @recipientKey`,
  );

  /**
   * A bounce ends what was delivered, or what waits because the end of its last attempt is unknown. Who was not
   * written to has nothing to complain about: a report that names him knows the message from another recipient.
   */
  const settle = (report: Report): ReportResult => {
    const now = standing.get(report.recipientKey, report.messageKey);
    if (!now) return "already";
    if (now.leased !== 0) return "busy";
    const mayBounce = now.state === "delivered" || (now.waits !== 0 && now.attempts > 0);
    const isNew = now.complained === 0 || (now.unconfirmed !== 0 && report.suppression !== null);
    const mayComplain = (now.state === "delivered" || now.attempts > 0) && isNew;
    if (report.kind === "bounced" ? !mayBounce : !mayComplain) return "already";
    const { kind, recipientKey, at, smtpCode, smtpStatus, smtpResponse, event } = report;
    if (kind === "complained")
      complain.run({
        recipientKey,
        at,
        eventAt: event.occurredAt,
        unconfirmed: report.suppression === null ? 1 : null,
      });
    else {
      bounce.run({ recipientKey, at, eventAt: event.occurredAt, smtpCode, smtpStatus, smtpResponse });
      if (now.waits !== 0) tally.change(now.accountKey, -1, -now.bytes);
    }
    parts.recordEvent(event);
    if (report.suppression) parts.addSuppression(report.suppression, at);
    return "recorded";
  };

  return {
    settleReports: (reports: Report[]): ReportResult[] => reports.map(settle),
  };
}

export const reports = noun({
  commands: (db: Database, { tally, ...parts }: Writing) => createReportWrites(db, tally, parts),
  touches: {
    settleReports(touch, settled, results) {
      settled.forEach(({ at, event: { accountKey }, suppression }, index) => {
        if (results?.[index] !== "recorded") return;
        touch(accountKey, "messages", at);
        touch(accountKey, "events", at);
        if (suppression) touch(accountKey, "suppressions", at);
      });
    },
  },
  lookups: (db: Database) => ({ sent: createSentRows(db) }),
  lists: none,
  calls: ({ write, lookups, clock }): ReportStore => ({
    sentMessage: async (of) => lookups.sent(of, clock.now()),
    settleReports: (settled) =>
      write.settleReports(settled.map((report) => ({ ...report, event: packEvent(report.event) }))),
  }),
});
