// Every question that is asked of the reader's thread: lists, counts, lanes.
import type { Database } from "better-sqlite3";
import type { AttemptView } from "../../model/attempt.ts";
import { createAuditLists } from "./audit.ts";
import { createDeliveryLists } from "./webhook-delivery-lists.ts";
import { createEventLists } from "./event-lists.ts";
import { createInboxLists } from "./inbox.ts";
import { createMessageLists } from "./message-lists.ts";
import { createAttemptRows } from "./message-rows.ts";
import { createQueueViews } from "./queue-views.ts";
import { createStatsViews } from "./stats-views.ts";
import { createSuppressionLists } from "./suppression-lists.ts";

export function createReader(db: Database) {
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
  };
}

export type Questions = ReturnType<typeof createReader>;
