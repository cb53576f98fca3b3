// Every command, prepared once on the one connection that writes. A command takes plain values and the bytes
// that go with it, and answers with plain values: it is called on the writer's thread, inside a transaction that it
// neither begins nor ends.
import type { Database } from "better-sqlite3";
import type { AuditEntry } from "../../model/audit.ts";
import { createAcceptance } from "./acceptance.ts";
import { createAnswered } from "./idempotent-write.ts";
import { createAnswers } from "./idempotency.ts";
import type { Answers } from "./idempotency.ts";
import { createAccountWrites } from "./accounts.ts";
import { createAccessWrites } from "./api-keys.ts";
import { createDomainWrites } from "./domains.ts";
import { createAuditWrites } from "./audit.ts";
import type { AuditWrites } from "./audit.ts";
import { createEventWrites } from "./events.ts";
import { createForget } from "./erasure.ts";
import { createHoldWrites } from "./held-mail.ts";
import { createPoolWrites } from "./ip-pools.ts";
import { createPurge } from "./retention.ts";
import { createQueueWrites } from "./queue.ts";
import { createReplay } from "./webhook-replay.ts";
import { createReportWrites } from "./reports.ts";
import { createSecondLookWrites } from "./nxdomain-rechecks.ts";
import { createSettlementWrites } from "./settlement.ts";
import { createStatsFold } from "./stats-fold.ts";
import { createStatsGather } from "./stats-gather.ts";
import type { StatsGather } from "./stats-gather.ts";
import { createSuppressionWrites } from "./suppressions.ts";
import { createTally } from "../batch-counters.ts";
import type { Tally } from "../batch-counters.ts";
import { countUnsent } from "./queue-unsent.ts";
import { createWebhookWrites } from "./webhooks.ts";

export function createWriter(db: Database) {
  const tally = createTally(countUnsent(db));
  const answers = createAnswers(db);
  const audit = createAuditWrites(db);
  const gather = createStatsGather(db, tally);
  const writes = createWrites(db, tally, { answers, audit, gather });
  return {
    commands: { ...writes, ...createAnswered(db, tally, { answers, audit }, writes) },
    state: tally,
    flush: () => gather.flush(),
    brought: () => ({ events: tally.events }),
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
    ...gather.commands,
    ...createStatsFold(db),
    ...events,
    ...suppressionIntents,
    ...lookIntents,
  };
}

/** The commands that write one thing each. */
export type Writes = ReturnType<typeof createWrites>;
