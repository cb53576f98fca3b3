// What retention removes, and with what: content with the dialogues and inbox copies that show it; messages with
// recipients and attempts; events with their deliveries; answers that are too old to be replayed; old statistics. Nothing that is still
// to be sent or posted. Each call is a small piece (`limit`), so that no other write waits long; files are the caller's
// to unlink, after the commit. Which rows it is about, retention-walk.ts finds.
import type { Database, Statement } from "better-sqlite3";
import type { ContentRef } from "../../model/content.ts";
import { idempotencyKeptMs } from "../../model/idempotency.ts";
import type { Expired, ExpiredRequest, ExpiredRows, Purged, PurgeRequest } from "../../model/retention.ts";
import { everyone, removed } from "../changes.ts";
import type { RetentionStore } from "../interface/retention.ts";
import type { AuditWrites } from "./audit.ts";
import { unlinkAll } from "./content.ts";
import { none, noun, type Writing } from "./noun.ts";
import { createIncrementalVacuum } from "./engine/incremental-vacuum.ts";
import { pageBytes, pageBytesOf } from "./engine/pages.ts";
import { createStatsPurge } from "./stats-purge.ts";
import { createWalks } from "./retention-walk.ts";
import type { Aged } from "./retention-walk.ts";
import type { RetentionKind } from "./schema/appliance.ts";

interface AgedMessage extends Aged {
  sizeBytes: number;
  contentKind: ContentRef["kind"] | null;
  contentName: string | null;
  recipients: number;
  /** Of all its recipients. */
  attempts: number;
  unsent: number;
  /** When the last of its recipients was written. */
  writtenAt: number;
}

interface AgedEvent extends Aged {
  accountKey: number;
}

/** Counts of one call, and the files that nothing names any more. */
export interface PurgedRows extends Omit<Purged, "files"> {
  files: string[];
  /** All idle pages were cut off: copying the log into the database now shortens its file. */
  shorter: boolean;
}

const mostCounted = 100_000;
/** What is not final now cannot be too old before its retention has passed once more; it is looked at a little later still. */
const leastSlackMs = 10_000;
const mostSlackMs = 600_000;
const notBefore = (row: Aged, now: number): number =>
  now + Math.min(mostSlackMs, Math.max(leastSlackMs, Math.floor((now - row.at) / 8)));

export function createPurge(db: Database, audit: Pick<AuditWrites, "purge">) {
  const remove = createRemoval(db);
  const walks = createAgings(db);
  const vacuum = createIncrementalVacuum(db);
  const oldStats = createStatsPurge(db);
  const pageSize = pageBytesOf(db);

  return {
    /** Each kind has its share of the limit, so that no backlog of one delays the others. */
    purge({ now, limit, returnAll, ...request }: PurgeRequest): PurgedRows {
      const share = Math.ceil(limit / 4);
      const piece = (before: number) => ({ now, before, limit: share });
      const bare = walks.content(piece(request.contentBefore));
      const forgotten = bare.gone.filter(hasContent);
      remove.content(forgotten);

      const messages = walks.messages(piece(request.messagesBefore));
      forgotten.push(...messages.gone.filter(hasContent));
      remove.content(messages.gone.filter(hasContent));
      remove.messages(messages.gone);

      const events = walks.events(piece(request.eventsBefore));
      const deliveries = remove.deliveries(events.gone);
      remove.events(events.gone);

      const answers = walks.idempotency(piece(now - idempotencyKeptMs - 1));
      remove.answers(answers.gone);

      const stats = oldStats(now, share);
      const auditRows = audit.purge(request.auditBefore, share);

      const space = vacuum(now, share, returnAll);
      const inFiles = forgotten.filter(({ contentName }) => contentName !== null);
      return {
        content: forgotten.length,
        messages: messages.gone.length,
        events: events.gone.length,
        deliveries,
        idempotency: answers.gone.length,
        stats: stats.rows,
        audit: auditRows,
        files: inFiles.flatMap(({ contentName }) => contentName ?? []),
        fileBytes: inFiles.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        returnedBytes: space.pages * pageSize,
        more: auditRows === share || [bare, messages, events, answers, stats, space].some(({ more }) => more),
        shorter: space.pages > 0 && !space.more,
      };
    },
  };
}

const hasContent = (row: AgedMessage): boolean => row.contentKind !== null;

type WalkOver = ReturnType<typeof createWalks>;

/** The four walks: what they read, and what decides a row's age. */
function createAgings(db: Database) {
  const walkOver = createWalks(db);
  return {
    ...createMessageWalks(db, walkOver),
    events: createEventWalk(db, walkOver),
    idempotency: createAnswerWalk(db, walkOver),
  };
}

/** Over the same rows twice, since content and messages are kept for different times. */
function createMessageWalks(db: Database, walkOver: WalkOver) {
  const message = `m.key, m.created_at AS at, m.size_bytes AS sizeBytes, m.content_kind AS contentKind, m.content_name AS contentName,
    count(r.key) AS recipients, total(r.attempts) AS attempts, total(r.due_at IS NOT NULL OR r.lease_owner IS NOT NULL) AS unsent,
    coalesce(max(r.updated_at), m.created_at) AS writtenAt`;
  const recipients = "LEFT JOIN recipients r ON r.message_key = m.key";
  const messages = {
    next: db.prepare<[number, number], AgedMessage>(
      `SELECT ${message} FROM messages m ${recipients} WHERE m.key > ? GROUP BY m.key ORDER BY m.key LIMIT ?`,
    ),
    of: db.prepare<[string], AgedMessage>(
      `SELECT ${message} FROM json_each(?) j CROSS JOIN messages m ON m.key = j.value ${recipients} GROUP BY m.key`,
    ),
    since: (row: AgedMessage, now: number): number => (row.unsent > 0 ? notBefore(row, now) : row.writtenAt),
  };
  const pages = (row: AgedMessage): number =>
    row.contentKind === "inline" ? Math.ceil(row.sizeBytes / pageBytes) : 0;

  return {
    content: walkOver<AgedMessage>({
      kind: "content",
      ...messages,
      weight: (row) => 2 + row.recipients + row.attempts + pages(row),
    }),
    messages: walkOver<AgedMessage>({
      kind: "messages",
      ...messages,
      weight: (row) => 2 + 2 * row.recipients + row.attempts + pages(row),
    }),
  };
}

function createEventWalk(db: Database, walkOver: WalkOver) {
  const event = "e.seq AS key, e.account_key AS accountKey, e.received_at AS at";
  const toFanOut = db.prepare("SELECT 1 FROM fan_outs WHERE account_key = ? AND event_seq = ?");
  const deliveries: Statement<[number, number], { n: number }> = db.prepare(
    `SELECT total(2 + (SELECT count(*) FROM delivery_attempts a WHERE a.endpoint_key = w.key AND a.event_seq = ?)) AS n
     FROM endpoints w WHERE w.account_key = ?`,
  );
  // What came to an endpoint that was failing, and was never tried, waits no longer than an event is kept.
  const unsettled: Statement<[number, number, number], { pending: number | null; deadAt: number | null }> =
    db.prepare(
      `SELECT max(d.status = 'pending' AND (d.attempts > 0 OR w.active = 0 OR w.failing_since IS NULL OR w.failing_since > ?)) AS pending,
         max(d.last_attempt_at) FILTER (WHERE d.status = 'dead_lettered') AS deadAt
       FROM endpoints w CROSS JOIN deliveries d ON d.endpoint_key = w.key AND d.event_seq = ? WHERE w.account_key = ?`,
    );

  return walkOver<AgedEvent>({
    kind: "events",
    next: db.prepare(`SELECT ${event} FROM events e WHERE e.seq > ? ORDER BY e.seq LIMIT ?`),
    of: db.prepare(`SELECT ${event} FROM json_each(?) j CROSS JOIN events e ON e.seq = j.value`),
    weight: (row) => 4 + (deliveries.get(row.key, row.accountKey)?.n ?? 0),
    since(row, now) {
      const { pending, deadAt } = unsettled.get(row.at, row.key, row.accountKey) ?? {};
      const waits = pending || toFanOut.get(row.accountKey, row.key) !== undefined;
      return waits ? notBefore(row, now) : Math.max(row.at, deadAt ?? row.at);
    },
  });
}

/** Answers that a used Idempotency-Key is given again. */
function createAnswerWalk(db: Database, walkOver: WalkOver) {
  const answer = "i.message_key AS key, i.created_at AS at";
  return walkOver<Aged>({
    kind: "idempotency",
    next: db.prepare(
      `SELECT ${answer} FROM idempotency i WHERE i.message_key > ? ORDER BY i.message_key LIMIT ?`,
    ),
    of: db.prepare(
      `SELECT ${answer} FROM json_each(?) j CROSS JOIN idempotency i ON i.message_key = j.value`,
    ),
    weight: () => 4,
    since: (row) => row.at,
  });
}

/** The statements, each over many rows at once: what is left of their cost is that of the trees. */
function createRemoval(db: Database) {
  const keys = "(SELECT value FROM json_each(?))";
  const listOf = (rows: Aged[]): string => JSON.stringify(rows.map(({ key }) => key));
  const all = (...texts: string[]) => {
    const statements = texts.map((text): Statement<[string]> => db.prepare(text));
    return (rows: Aged[]): void => {
      if (rows.length === 0) return;
      const list = listOf(rows);
      for (const statement of statements) statement.run(list);
    };
  };
  const endpointsOf: Statement<[number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE account_key = ?",
  );
  const delivery = db.prepare(`DELETE FROM deliveries WHERE endpoint_key = ? AND event_seq IN ${keys}`);
  const attempts = db.prepare(
    `DELETE FROM delivery_attempts WHERE endpoint_key = ? AND event_seq IN ${keys}`,
  );
  return {
    content: all(
      `DELETE FROM content WHERE message_key IN ${keys}`,
      `DELETE FROM inbox WHERE message_key IN ${keys}`,
      `UPDATE attempts SET trace = NULL WHERE message_key IN ${keys} AND trace IS NOT NULL`,
      `UPDATE messages SET content_kind = NULL, content_name = NULL WHERE key IN ${keys}`,
    ),
    messages: all(
      `DELETE FROM attempts WHERE message_key IN ${keys}`,
      `DELETE FROM recipients WHERE message_key IN ${keys}`,
      `DELETE FROM messages WHERE key IN ${keys}`,
    ),
    events: all(`DELETE FROM events WHERE seq IN ${keys}`),
    answers: all(`DELETE FROM idempotency WHERE message_key IN ${keys}`),
    /** Before their events; answers how many. */
    deliveries(rows: AgedEvent[]): number {
      let removed = 0;
      for (const [accountKey, own] of Map.groupBy(rows, (row) => row.accountKey))
        for (const { key } of endpointsOf.all(accountKey)) {
          removed += delivery.run(key, listOf(own)).changes;
          attempts.run(key, listOf(own));
        }
      return removed;
    },
  };
}

/** Keys are in the order of time: what is old enough is at the front of what no walk has passed. */
function createExpiredCounts(db: Database) {
  const front = (kind: RetentionKind | null, table: string, key: string, at: string, where = "1") => {
    const passed =
      kind === null ? "0" : `coalesce((SELECT passed FROM retention_walks WHERE kind = '${kind}'), 0)`;
    const put =
      kind === null
        ? "0"
        : `(SELECT count(*) FROM (SELECT 1 FROM retention_later WHERE kind = '${kind}' AND since <= @before LIMIT ${mostCounted}))`;
    const statement = db.prepare<[{ before: number }], { rows: number; looked: number }>(
      `SELECT ${put} + count(*) FILTER (WHERE old AND counts) AS rows, count(*) FILTER (WHERE old) AS looked
       FROM (SELECT ${at} <= @before AS old, ${where} AS counts FROM ${table} WHERE ${key} > ${passed} ORDER BY ${key} LIMIT ${mostCounted})`,
    );
    return (before: number): ExpiredRows => {
      const { rows, looked } = statement.get({ before }) ?? { rows: 0, looked: 0 };
      return { rows, more: looked === mostCounted };
    };
  };
  const content = front("content", "messages", "key", "created_at", "content_kind IS NOT NULL");
  const messages = front("messages", "messages", "key", "created_at");
  const events = front("events", "events", "seq", "received_at");
  const audit = front(null, "audit", "seq", "at");
  return {
    expired: (request: ExpiredRequest): Expired => ({
      content: content(request.contentBefore),
      messages: messages(request.messagesBefore),
      events: events(request.eventsBefore),
      audit: audit(request.auditBefore),
    }),
  };
}

export const retention = noun({
  commands: (db: Database, { audit }: Writing) => createPurge(db, audit),
  touches: {
    purge(touch, _request, result) {
      if (!result) return;
      if (result.content + result.messages > 0) {
        touch(everyone, "messages", removed);
        touch(everyone, "inbox", removed);
      }
      if (result.events > 0) touch(everyone, "events", removed);
      if (result.stats > 0) touch(everyone, "stats", removed);
    },
  },
  lookups: none,
  lists: createExpiredCounts,
  calls: ({ write, lists, content, spool, checkpoint }): RetentionStore => ({
    expired: (request) => lists.expired(request),
    async purge(request) {
      const { files, shorter, ...purged } = await write.purge(request);
      if (purged.content > 0) content.clear();
      await unlinkAll(spool, files);
      if (shorter) await checkpoint();
      return { ...purged, files: files.length };
    },
  }),
});
