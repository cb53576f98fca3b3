// Every write intent, prepared once on the one connection that writes. An intent takes plain values and the bytes
// that go with it, and answers with plain values: it is called on the writer's thread, inside a transaction that it
// neither begins nor ends.
import type { Database } from "better-sqlite3";
import type { AuditEntry } from "../model/audit.ts";
import { createAcceptance } from "./acceptance.ts";
import { createAnswered } from "./answered.ts";
import { createAnswers } from "./answers.ts";
import type { Answers } from "./answers.ts";
import { createAccountWrites } from "./account-writes.ts";
import { createAccessWrites } from "./access-writes.ts";
import { createDomainWrites } from "./domain-writes.ts";
import { createAuditWrites } from "./audit-rows.ts";
import type { AuditWrites } from "./audit-rows.ts";
import { createEventWrites } from "./event-writes.ts";
import { createForget } from "./forget.ts";
import { createHoldWrites } from "./holds.ts";
import { createPoolWrites } from "./pool-writes.ts";
import { createPurge } from "./purge.ts";
import { createQueueWrites } from "./queue-writes.ts";
import { createReplay } from "./replay.ts";
import { createReportWrites } from "./report-writes.ts";
import { createSecondLookWrites } from "./second-look-writes.ts";
import { createSettlementWrites } from "./settlement.ts";
import { createStatsFold } from "./stats-fold.ts";
import { createStatsGather } from "./stats-gather.ts";
import type { StatsGather } from "./stats-gather.ts";
import { createSuppressionWrites } from "./suppression-writes.ts";
import { createTally } from "./tally.ts";
import type { Tally } from "./tally.ts";
import { countUnsent } from "./unsent.ts";
import { createWebhookWrites } from "./webhook-writes.ts";

export function createWriter(db: Database) {
  const tally = createTally(countUnsent(db));
  const answers = createAnswers(db);
  const audit = createAuditWrites(db);
  const gather = createStatsGather(db, tally);
  const writes = createWrites(db, tally, { answers, audit, gather });
  return {
    intents: { ...writes, ...createAnswered(db, tally, { answers, audit }, writes) },
    tally,
    flushCounts: () => gather.flush(),
  };
}

function createWrites(
  db: Database,
  tally: Tally,
  { answers, audit, gather }: { answers: Answers; audit: AuditWrites; gather: StatsGather },
) {
  const events = createEventWrites(db, tally);
  const suppressions = createSuppressionWrites(db);
  const { addSuppression, ...suppressionIntents } = suppressions;
  const { askSecondLook, ...lookIntents } = createSecondLookWrites(db, addSuppression);
  return {
    ...createAcceptance(db, tally, answers),
    ...createAccountWrites(db, tally),
    ...createAccessWrites(db),
    ...createDomainWrites(db),
    ...createQueueWrites(db, tally),
    ...createHoldWrites(db, (entry) => audit.record(entry)),
    ...createForget(db, tally),
    ...createSettlementWrites(db, tally, {
      recordEvent: (event) => events.recordEvent(event),
      addSuppression,
      askSecondLook,
    }),
    ...createReportWrites(db, tally, {
      recordEvent: (event) => events.recordEvent(event),
      addSuppression,
    }),
    ...createWebhookWrites(db, tally),
    ...createReplay(db),
    ...createPoolWrites(db),
    ...createPurge(db, audit),
    recordAudit(arg: { entries: AuditEntry[] }): void {
      for (const entry of arg.entries) audit.record(entry);
    },
    ...gather.intents,
    ...createStatsFold(db),
    ...events,
    ...suppressionIntents,
    ...lookIntents,
  };
}

/** The intents that write one thing each. */
export type Writes = ReturnType<typeof createWrites>;
export type WriteName = keyof Writes;
export type Intents = ReturnType<typeof createWriter>["intents"];
export type IntentName = keyof Intents;
