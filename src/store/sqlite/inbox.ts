// The local inbox, newest first (the key tells mails of one time apart): mail of test keys and of --dev, shown by the message that it is.
import type { Database, Statement } from "better-sqlite3";
import type { InboxMail } from "../../model/inbox.ts";
import { pageAt, pageOf, type PageAt, type PageFound } from "../cursor.ts";
import type { InboxStore } from "../interface/inbox.ts";
import type { Cell } from "../message-packing.ts";
import { none, noun } from "./noun.ts";

type Params = Record<string, Cell>;

export function createInboxLists(db: Database) {
  const newest: Statement<[Params], InboxMail> = db.prepare(
    `SELECT i.key, m.id AS messageId, i.to_address AS "to", m.from_address AS "from", m.subject, i.caught_at AS caughtAt, m.size_bytes AS sizeBytes
     FROM inbox i CROSS JOIN messages m ON m.key = i.message_key
     WHERE i.account_key = @accountKey AND (i.caught_at, i.key) < (@beforeAt, @beforeKey) ORDER BY i.caught_at DESC, i.key DESC LIMIT @limit`,
  );
  return {
    /** Newest first. */
    listInbox(arg: { accountKey: number; page: PageAt }): PageFound<InboxMail> {
      const [beforeAt = Number.MAX_SAFE_INTEGER, beforeKey = 0] = arg.page.after ?? [];
      const list = newest.all({ accountKey: arg.accountKey, beforeAt, beforeKey, limit: arg.page.limit + 1 });
      const rows = list.slice(0, arg.page.limit);
      const last = rows.at(-1);
      const next = list.length > arg.page.limit && last ? [last.caughtAt, last.key] : null;
      return { rows, next, hasMore: next !== null };
    },
  };
}

function createInboxWrites(db: Database) {
  const clearInbox = db.prepare("DELETE FROM inbox WHERE account_key = ?");
  return {
    clearInbox(arg: { accountKey: number }): number {
      return clearInbox.run(arg.accountKey).changes;
    },
  };
}

export const inbox = noun({
  commands: createInboxWrites,
  touches: { clearInbox: (touch, { accountKey }) => touch(accountKey, "inbox") },
  lookups: none,
  lists: createInboxLists,
  calls: ({ write, lists }): InboxStore => ({
    listInbox: async (accountKey, page) =>
      pageOf("i", await lists.listInbox({ accountKey, page: pageAt("i", page, ["number", "number"]) })),
    clearInbox: (accountKey) => write.clearInbox({ accountKey }),
  }),
});
