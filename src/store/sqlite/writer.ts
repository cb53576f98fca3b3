// What the writer's thread runs, prepared on the one connection that writes: the commands of every noun, and the one that
// keeps a write with its answer. A command is called inside a transaction that it neither begins nor ends.
import type { Database } from "better-sqlite3";
import { createTally } from "../batch-counters.ts";
import { createAuditWrites } from "./audit.ts";
import { createEventWrites } from "./events.ts";
import { createAnswers } from "./idempotency.ts";
import { createIdempotentWrite } from "./idempotent-write.ts";
import { prepareCommands } from "./nouns.ts";
import { createSequences } from "./sequences.ts";
import { createNxdomainRecheckWrites } from "./nxdomain-rechecks.ts";
import { countUnsent } from "./queue-unsent.ts";
import { createStatsGather } from "./stats-gather.ts";
import { createSuppressionWrites } from "./suppressions.ts";
import { createWarmupCount } from "./warmups.ts";

export function createWriter(db: Database) {
  const tally = createTally(countUnsent(db));
  const sequences = createSequences(db);
  const answers = createAnswers(db, sequences);
  const audit = createAuditWrites(db, sequences);
  const gather = createStatsGather(db, tally);
  const { recordEvent } = createEventWrites(db, tally, sequences);
  const { addSuppression } = createSuppressionWrites(db);
  const { addNxdomainRecheck } = createNxdomainRecheckWrites(db, addSuppression);
  const { countWarmup } = createWarmupCount(db);
  const commands = prepareCommands(db, {
    tally,
    sequences,
    answers,
    audit,
    recordEvent,
    addSuppression,
    addNxdomainRecheck,
    countWarmup,
  });
  return {
    commands: { ...commands, ...createIdempotentWrite(db, tally, { answers, audit, sequences }, commands) },
    state: tally,
    flush() {
      gather.flush();
      sequences.flush();
    },
    brought: () => ({ events: tally.events, deliveries: tally.deliveries, counted: gather.counted() }),
  };
}
