// Every question that is asked of the reader's thread: lists, counts, lanes, and the checkpoint that copies the
// write-ahead log into the database beside the writer. A question is one read transaction, so that no snapshot
// outlives a page.
import type { Database } from "better-sqlite3";
import type { AttemptView } from "../model/attempt.ts";
import { createAuditLists } from "./audit-rows.ts";
import { createDeliveryLists } from "./delivery-lists.ts";
import { createEventLists } from "./event-lists.ts";
import { createInboxLists } from "./inbox-lists.ts";
import { createMessageLists } from "./message-lists.ts";
import { createAttemptRows } from "./message-rows.ts";
import { createQueueViews } from "./queue-views.ts";
import { createStatsViews } from "./stats-views.ts";
import { createSuppressionLists } from "./suppression-lists.ts";

export function createReader(db: Database, checkpointer: Database) {
  const attempts = createAttemptRows(db);
  return {
    ...createMessageLists(db),
    ...createEventLists(db),
    ...createDeliveryLists(db),
    ...createSuppressionLists(db),
    ...createInboxLists(db),
    ...createAuditLists(db),
    ...createQueueViews(db),
    ...createStatsViews(db),
    attempts: (arg: { accountKey: number; messageId: string }): AttemptView[] =>
      attempts(arg.accountKey, arg.messageId),
    /** PASSIVE: waits for nobody and is in nobody's way. */
    checkpoint(_arg: null): void {
      checkpointer.pragma("wal_checkpoint(PASSIVE)");
    },
  };
}

export type Questions = ReturnType<typeof createReader>;
export type QuestionName = keyof Questions;
