// Lists of messages, newest first: by time, where the key tells messages of one time apart, and those to one recipient by
// the key, which is the order of acceptance (sequences.ts). `to` and time are served by indexes; any other filter walks at
// most 20,000 rows a page, and the page then ends early, with more to come.
import type { Database } from "better-sqlite3";
import type { MessageFilter, MessageRecord } from "../../model/message.ts";
import { patternNames } from "../../model/patterns.ts";
import { finalStates } from "../../model/recipient.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { createMessageRows, messageColumns, shownState } from "./message-rows.ts";
import type { MessageRow } from "./message-rows.ts";
import { globsOf } from "./glob-filter.ts";

/** A message's state as one word: the common one of its recipients, else whether anything is still to come. */
const messageStatus = `(SELECT CASE WHEN min(s) = max(s) THEN min(s)
    WHEN sum(s NOT IN (${finalStates.map((state) => `'${state}'`).join(", ")})) = 0 THEN 'partially_delivered' ELSE 'processing' END
  FROM (SELECT ${shownState} AS s FROM recipients WHERE message_key = m.key))`;

/** What one recipient of the message, `o`, has to be all of. */
const ofRecipient = {
  toLike: "o.canonical GLOB @toLike",
  domain: "o.domain GLOB @domain",
  ip: "o.sending_ip GLOB @ip",
  code: "CAST(o.smtp_code AS TEXT) GLOB @code",
  enhanced: "o.smtp_status GLOB @enhanced",
};

const conditions: { [K in Exclude<keyof MessageFilter, keyof typeof ofRecipient>]-?: string } = {
  status: `${messageStatus} = @status`,
  from: "m.from_address = @from COLLATE NOCASE",
  to: "", // chooses the index instead
  toDomain: "EXISTS (SELECT 1 FROM recipients WHERE message_key = m.key AND domain = @toDomain)",
  tag: "EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = @tag)",
  subject: "instr(lower(m.subject), lower(@subject)) > 0",
  ipPool: "m.ip_pool = @ipPool",
  source: "m.source = @source",
  createdAfter: "m.created_at >= @createdAfter",
  createdBefore: "m.created_at < @createdBefore",
  messageIdHeader: "m.message_id_header = @messageIdHeader",
  remoteId:
    "EXISTS (SELECT 1 FROM attempts t WHERE t.message_key = m.key AND instr(t.smtp_response, @remoteId) > 0)",
  fromLike: "lower(m.from_address) GLOB @fromLike",
  tagLike: "EXISTS (SELECT 1 FROM json_each(m.tags) WHERE lower(value) GLOB @tagLike)",
  pool: "m.ip_pool GLOB @pool",
  type: "EXISTS (SELECT 1 FROM events v WHERE v.message_key = m.key AND v.type GLOB @type)",
  key: "EXISTS (SELECT 1 FROM api_keys k WHERE k.key = m.api_key AND k.id GLOB @key)",
};

type Params = Record<string, Cell>;

export function createMessageLists(db: Database) {
  const rows = createMessageRows(db);

  const found = (
    list: MessageRow[],
    page: PageAt,
    now: number,
    place: (row: MessageRow) => number[],
    bound: number[] | null,
  ) => {
    const shown = list.slice(0, page.limit);
    const last = shown.at(-1);
    const overflowed = list.length > page.limit && last !== undefined;
    const next = overflowed ? place(last) : bound;
    const records = shown.map((row): MessageRecord => rows.recordOf(row, now));
    return { rows: records, next, hasMore: next !== null } satisfies PageFound<MessageRecord>;
  };

  const byTime = (
    accountKey: number,
    filter: MessageFilter,
    page: PageAt,
    now: number,
  ): PageFound<MessageRecord> => {
    const { others, params } = read(filter, ["createdAfter", "createdBefore"]);
    const range = ["m.account_key = @accountKey"];
    if (filter.createdAfter !== undefined) range.push(conditions.createdAfter);
    if (filter.createdBefore !== undefined) range.push(conditions.createdBefore);
    if (page.after) range.push("(m.created_at, m.key) < (@afterTime, @afterKey)");
    const [afterTime = null, afterKey = null] = page.after ?? [];
    const bind: Params = {
      ...params,
      accountKey,
      now,
      afterTime,
      afterKey,
      limit: page.limit + 1,
      walk: walkLimit - 1,
    };
    let bound: number[] | null = null;
    if (others.length > 0) {
      const end = db
        .prepare<[Params], { time: number; key: number }>(
          `SELECT m.created_at AS time, m.key FROM messages m WHERE ${range.join(" AND ")} ORDER BY m.created_at DESC, m.key DESC LIMIT 1 OFFSET @walk`,
        )
        .get(bind);
      if (end) {
        bound = [end.time, end.key];
        others.push("(m.created_at, m.key) >= (@boundTime, @boundKey)");
        Object.assign(bind, { boundTime: end.time, boundKey: end.key });
      }
    }
    const list = db
      .prepare<[Params], MessageRow>(
        `SELECT ${messageColumns} FROM messages m WHERE ${[...range, ...others].join(" AND ")} ORDER BY m.created_at DESC, m.key DESC LIMIT @limit`,
      )
      .all(bind);
    return found(list, page, now, (row) => [row.createdAt, row.key], bound);
  };

  const byRecipient = (
    accountKey: number,
    filter: MessageFilter,
    page: PageAt,
    now: number,
  ): PageFound<MessageRecord> => {
    const { others, params } = read(filter, []);
    const range = ["r.account_key = @accountKey", "r.canonical = @to"];
    if (page.after) range.push("r.message_key < @afterKey");
    const [afterKey = null] = page.after ?? [];
    const bind: Params = {
      ...params,
      accountKey,
      to: filter.to ?? "",
      now,
      afterKey,
      limit: page.limit + 1,
      walk: walkLimit - 1,
    };
    let bound: number[] | null = null;
    if (others.length > 0) {
      const end = db
        .prepare<[Params], { key: number }>(
          `SELECT r.message_key AS key FROM recipients r WHERE ${range.join(" AND ")} ORDER BY r.message_key DESC LIMIT 1 OFFSET @walk`,
        )
        .get(bind);
      if (end) {
        bound = [end.key];
        others.push("r.message_key >= @boundKey");
        bind.boundKey = end.key;
      }
    }
    const list = db
      .prepare<[Params], MessageRow>(
        `SELECT ${messageColumns} FROM recipients r CROSS JOIN messages m ON m.key = r.message_key
         WHERE ${[...range, ...others].join(" AND ")} GROUP BY r.message_key ORDER BY r.message_key DESC LIMIT @limit`,
      )
      .all(bind);
    return found(list, page, now, (row) => [row.key], bound);
  };

  return {
    listMessages(arg: {
      accountKey: number;
      filter: MessageFilter;
      page: PageAt;
      now: number;
    }): PageFound<MessageRecord> {
      const list = arg.filter.to === undefined ? byTime : byRecipient;
      return list(arg.accountKey, arg.filter, arg.page, arg.now);
    },
  };
}

/** The conditions that no index serves, and what is bound for the whole filter. */
function read(filter: MessageFilter, served: (keyof MessageFilter)[]): { others: string[]; params: Params } {
  const others: string[] = [];
  const params: Params = {};
  for (const name of Object.keys(conditions) as (keyof typeof conditions)[]) {
    const value = filter[name];
    if (value === undefined) continue;
    params[name] = value;
    if (name !== "to" && !served.includes(name)) others.push(conditions[name]);
  }
  const names = Object.keys(ofRecipient) as (keyof typeof ofRecipient)[];
  const one = names.filter((name) => filter[name] !== undefined).map((name) => ofRecipient[name]);
  if (one.length > 0) {
    if (filter.to !== undefined) one.push("o.canonical = @to");
    others.push(`EXISTS (SELECT 1 FROM recipients o WHERE o.message_key = m.key AND ${one.join(" AND ")})`);
  }
  return { others, params: { ...params, ...globsOf(filter, patternNames) } };
}
