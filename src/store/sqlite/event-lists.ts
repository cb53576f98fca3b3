// The events of an account in commit order. The position after a page is given even when nothing more is there, so
// that polling it tails the list. Message, event and recipient are served by indexes; other filters walk at most
// 20,000 rows a page.
import type { Database, Statement } from "better-sqlite3";
import type { EventFilter, EventRecord } from "../../model/event.ts";
import { patternNames } from "../../model/patterns.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { globsOf } from "./glob-filter.ts";

type Params = Record<string, Cell>;

/** Events of one address: those of its messages, and those that name it without a message. */
const addressed = `e.seq IN (
  SELECT o.seq FROM recipients r CROSS JOIN events o ON o.message_key = r.message_key AND o.recipient = r.canonical
    WHERE r.account_key = @accountKey AND r.canonical = @to
  UNION SELECT n.seq FROM events n INDEXED BY events_address WHERE n.message_key IS NULL AND n.account_key = @accountKey AND n.recipient = @to)`;

const messageOf = "EXISTS (SELECT 1 FROM messages m WHERE m.key = e.message_key";
const patterns: Record<(typeof patternNames)[number], string> = {
  toLike: "e.recipient GLOB @toLike",
  fromLike: "lower(json_extract(e.body, '$.data.from')) GLOB @fromLike",
  tagLike: "EXISTS (SELECT 1 FROM json_each(e.body, '$.data.tags') WHERE lower(value) GLOB @tagLike)",
  domain: "e.recipient GLOB '*@' || @domain",
  ip: "coalesce(json_extract(e.body, '$.data.sending_ip'), json_extract(e.body, '$.data.ip_address')) GLOB @ip",
  pool: `${messageOf} AND m.ip_pool GLOB @pool)`,
  type: "e.type GLOB @type",
  code: "json_extract(e.body, '$.data.smtp_code') GLOB @code",
  enhanced: "json_extract(e.body, '$.data.smtp_status') GLOB @enhanced",
  key: `${messageOf} AND EXISTS (SELECT 1 FROM api_keys k WHERE k.key = m.api_key AND k.id GLOB @key))`,
};

export function createEventLists(db: Database) {
  const messageKey: Statement<[string, number], { key: number }> = db.prepare(
    "SELECT key FROM messages WHERE id = ? AND account_key = ?",
  );
  const endpointKey: Statement<[string, number], { key: number }> = db.prepare(
    "SELECT key FROM endpoints WHERE id = ? AND account_key = ?",
  );
  const newest: Statement<[], { seq: number | null }> = db.prepare("SELECT max(seq) AS seq FROM events");
  const nextAccount: Statement<[number], { accountKey: number }> = db.prepare(
    "SELECT account_key AS accountKey FROM events WHERE account_key > ? ORDER BY account_key LIMIT 1",
  );
  const newestOf: Statement<[number], { seq: number }> = db.prepare(
    "SELECT seq FROM events WHERE account_key = ? ORDER BY seq DESC LIMIT 1",
  );
  const manyMessages: Statement<[number, string, number], { n: number }> = db.prepare(
    "SELECT 1 AS n FROM recipients WHERE account_key = ? AND canonical = ? ORDER BY message_key LIMIT 1 OFFSET ?",
  );
  const deliveriesOf: Statement<[number, number], EventRecord["deliveries"][number]> = db.prepare(
    `SELECT w.id AS webhookId, d.status, d.attempts, d.last_attempt_at AS lastAttemptAt, d.last_status AS lastStatus
     FROM endpoints w CROSS JOIN deliveries d ON d.endpoint_key = w.key AND d.event_seq = ? WHERE w.account_key = ? ORDER BY w.created_at, w.key`,
  );

  /** The conditions of a filter; `walks`: no index narrows the rows to few. Null: nothing can match. */
  const read = (
    accountKey: number,
    filter: EventFilter,
  ): { where: string[]; params: Params; walks: boolean } | null => {
    const where: string[] = [];
    const params: Params = { accountKey };
    let narrowed = false;
    const add = (condition: string, bind: Params): void => {
      where.push(condition);
      Object.assign(params, bind);
    };
    if (filter.eventId !== undefined) {
      add("e.id = @eventId", { eventId: filter.eventId });
      narrowed = true;
    }
    if (filter.messageId !== undefined) {
      const message = messageKey.get(filter.messageId, accountKey);
      if (!message) return null;
      add("e.message_key = @messageKey", { messageKey: message.key });
      narrowed = true;
    }
    if (filter.to !== undefined) {
      const dense = narrowed || manyMessages.get(accountKey, filter.to, walkLimit) !== undefined;
      add(dense ? "e.recipient = @to" : addressed, { to: filter.to });
      narrowed ||= !dense;
    }
    const filtered = where.length;
    if (filter.types !== undefined)
      add("e.type IN (SELECT value FROM json_each(@types))", { types: JSON.stringify(filter.types) });
    if (filter.tag !== undefined)
      add("EXISTS (SELECT 1 FROM json_each(e.body, '$.data.tags') WHERE value = @tag)", { tag: filter.tag });
    if (filter.ipAddress !== undefined)
      add("json_extract(e.body, '$.data.ip_address') = @ipAddress", { ipAddress: filter.ipAddress });
    if (filter.occurredAfter !== undefined)
      add("e.occurred_at >= @occurredAfter", { occurredAfter: filter.occurredAfter });
    if (filter.occurredBefore !== undefined)
      add("e.occurred_at < @occurredBefore", { occurredBefore: filter.occurredBefore });
    for (const name of patternNames) if (filter[name] !== undefined) where.push(patterns[name]);
    Object.assign(params, globsOf(filter, patternNames));
    if (filter.webhookId !== undefined || filter.deliveryStatus !== undefined) {
      const endpoint = filter.webhookId === undefined ? null : endpointKey.get(filter.webhookId, accountKey);
      if (endpoint === undefined) return null;
      add(deliveryCondition(filter.deliveryStatus, endpoint !== null), {
        endpoint: endpoint?.key ?? null,
        deliveryStatus: filter.deliveryStatus ?? null,
      });
    }
    return { where, params, walks: !narrowed && (where.length > filtered || filter.to !== undefined) };
  };

  return {
    /** Two seeks an account. */
    accountsWithEvents({ afterSeq }: { afterSeq: number }): { accounts: number[]; lastSeq: number } {
      const accounts: number[] = [];
      let lastSeq = afterSeq;
      for (let next = nextAccount.get(0); next; next = nextAccount.get(next.accountKey)) {
        const seq = newestOf.get(next.accountKey)?.seq ?? 0;
        if (seq > afterSeq) accounts.push(next.accountKey);
        lastSeq = Math.max(lastSeq, seq);
      }
      return { accounts, lastSeq };
    },
    listEvents(arg: { accountKey: number; filter: EventFilter; page: PageAt }): PageFound<EventRecord> {
      const { accountKey, filter, page } = arg;
      const ascending = filter.order !== "desc";
      const after = typeof page.after?.[0] === "number" ? page.after[0] : null;
      const end = ascending ? Math.max(newest.get()?.seq ?? 0, after ?? 0) : (after ?? 0);
      const query = read(accountKey, filter);
      if (!query) return { rows: [], next: [end], hasMore: false };

      const { params } = query;
      const range = [
        filter.messageId !== undefined || filter.eventId !== undefined
          ? "+e.account_key = @accountKey"
          : "e.account_key = @accountKey",
      ];
      if (after !== null) range.push(ascending ? "e.seq > @after" : "e.seq < @after");
      Object.assign(params, { after, limit: page.limit + 1, walk: walkLimit - 1 });
      const order = ascending ? "ASC" : "DESC";
      let bound: number | null = null;
      if (query.walks) {
        const last = db
          .prepare<[Params], { seq: number }>(
            `SELECT e.seq FROM events e WHERE ${range.join(" AND ")} ORDER BY e.seq ${order} LIMIT 1 OFFSET @walk`,
          )
          .get(params);
        if (last) {
          bound = last.seq;
          range.push(ascending ? "e.seq <= @bound" : "e.seq >= @bound");
          params.bound = bound;
        }
      }
      const list = db
        .prepare<[Params], Omit<EventRecord, "deliveries">>(
          `SELECT e.seq, e.id, e.type, e.body FROM events e WHERE ${[...range, ...query.where].join(" AND ")} ORDER BY e.seq ${order} LIMIT @limit`,
        )
        .all(params);
      const shown = list.slice(0, page.limit);
      const rows = shown.map((row) => ({ ...row, deliveries: deliveriesOf.all(row.seq, accountKey) }));
      const last = shown.at(-1)?.seq;
      if (list.length > page.limit && last !== undefined) return { rows, next: [last], hasMore: true };
      if (bound !== null) return { rows, next: [bound], hasMore: true };
      return { rows, next: [ascending ? end : (last ?? end)], hasMore: false };
    },
  };
}

function deliveryCondition(status: EventFilter["deliveryStatus"], ofOneEndpoint: boolean): string {
  const match = status === undefined || status === "none" ? "" : " AND d.status = @deliveryStatus";
  const exists = ofOneEndpoint
    ? `EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_key = @endpoint AND d.event_seq = e.seq${match})`
    : `EXISTS (SELECT 1 FROM endpoints w CROSS JOIN deliveries d ON d.endpoint_key = w.key AND d.event_seq = e.seq WHERE w.account_key = @accountKey${match})`;
  return status === "none" ? `NOT ${exists}` : exists;
}
