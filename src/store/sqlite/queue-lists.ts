// The queue of an account, looked at a stretch at a time: what waits is a stretch of one index (by scheduled queue and due
// time), what is held or being sent one of the other. A domain or pool that is named narrows the first to its scheduled
// queues; any other filter walks at most 20,000 rows a call, which then ends early, with more to come.
import type { Database, Statement } from "better-sqlite3";
import { patternNames } from "../../model/patterns.ts";
import {
  queueParts,
  type QueueEntry,
  type QueueFilter,
  type QueueGroup,
  type QueueGrouping,
  type QueuePart,
} from "../../model/queue-entry.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { globOf, globsOf } from "./glob-filter.ts";
import { firstHolder, firstOperatorHolder, holderOf, isHeld, operatorHolderOf } from "./held-mail.ts";
import { shownState } from "./message-rows.ts";

/** Rows that one call counts: as many groups may be passed on. */
const countLimit = 5_000;

/** Rows of one part, in the order of its index. */
interface Stretch {
  part: QueuePart;
  /** Scheduled queues from `first` to before `behind`; of what waits only. */
  first: string;
  behind: string;
}

const status = `CASE WHEN ${isHeld} THEN 'held' ELSE ${shownState} END`;

const held = {
  range: "r.lease_owner = @holder",
  order: "r.held_since, r.share_bytes, r.key",
  at: "@time, @bytes, @key",
};
/** `order` are the columns of the index, `at` the same of a place (Place). */
const parts: Record<QueuePart, { index: string; range: string; order: string; at: string }> = {
  waiting: {
    index: "recipients_waiting",
    range: "r.due_at IS NOT NULL AND r.queue_name < @behind",
    order: "r.queue_name, r.due_at, r.state, r.share_bytes, r.key",
    at: "@queueName, @time, @state, @bytes, @key",
  },
  account_hold: { index: "recipients_leased", ...held },
  operator_hold: { index: "recipients_leased", ...held },
  // As many as attempts run.
  sending: {
    index: "recipients_leased",
    range: `r.lease_owner < '${firstHolder}' AND r.account_key = @accountKey`,
    order: "r.key",
    at: "@key",
  },
};

/** Where a walk is, behind a row; its own columns of every part. */
interface Place {
  queueName: string;
  time: number;
  state: string;
  bytes: number;
  key: number;
}
const placeColumns = `r.queue_name AS queueName, coalesce(r.due_at, r.held_since, 0) AS time, r.state, r.share_bytes AS bytes, r.key`;
const before = (queueName: string): Place => ({ queueName, time: -1, state: "", bytes: -1, key: -1 });

/** The shape of a position: the part's number, and the place. */
export const queuePosition = ["number", "string", "number", "string", "number", "number"] as const;
const positionOf = (part: QueuePart, { queueName, time, state, bytes, key }: Place): (string | number)[] => [
  queueParts.indexOf(part),
  queueName,
  time,
  state,
  bytes,
  key,
];

/** Where the stretch has ended. */
const behind = (stretch: Stretch): (string | number)[] =>
  stretch.part === "waiting"
    ? positionOf(stretch.part, before(stretch.behind))
    : [queueParts.indexOf(stretch.part) + 1, ...positionOf("waiting", before("")).slice(1)];

const conditions: { [K in keyof QueueFilter]-?: string } = {
  status: `${status} = @status`,
  to: "r.canonical = @to",
  toLike: "r.canonical GLOB @toLike",
  fromLike: "lower(m.from_address) GLOB @fromLike",
  tag: "EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = @tag)",
  tagLike: "EXISTS (SELECT 1 FROM json_each(m.tags) WHERE lower(value) GLOB @tagLike)",
  domain: "r.domain GLOB @domain",
  ip: "r.sending_ip GLOB @ip",
  pool: "m.ip_pool GLOB @pool",
  type: "EXISTS (SELECT 1 FROM events v WHERE v.message_key = m.key AND v.type GLOB @type)",
  code: "CAST(r.smtp_code AS TEXT) GLOB @code",
  enhanced: "r.smtp_status GLOB @enhanced",
  key: "EXISTS (SELECT 1 FROM api_keys k WHERE k.key = m.api_key AND k.id GLOB @key_)",
  provider: "r.provider GLOB @provider",
};

const afterSlash = "substr(r.queue_name, instr(r.queue_name, '/') + 1)";
const dotToSlash =
  "substr(r.queue_name, instr(r.queue_name, '.') + 1, instr(r.queue_name, '/') - instr(r.queue_name, '.') - 1)";
/** Of what the index has, where it has it: a count by domain or pool looks at no row of what waits. */
const groupings: Record<QueueGrouping, string> = {
  domain: afterSlash,
  pool: dotToSlash,
  provider: "r.provider",
  ip: "r.sending_ip",
  error: "r.smtp_code || coalesce(' ' || r.smtp_status, '')",
  status,
};

interface EntryRow extends Omit<QueueEntry, "heldBy">, Omit<Place, "key"> {
  holder: string | null;
}

type Params = Record<string, Cell>;

export interface QueueLook {
  accountKey: number;
  filter: QueueFilter;
  parts: readonly QueuePart[];
  now: number;
}

export function createQueueLists(db: Database) {
  const nextQueue: Statement<[string, string], { queueName: string }> = db.prepare(
    `SELECT queue_name AS queueName FROM recipients INDEXED BY recipients_waiting
     WHERE due_at IS NOT NULL AND queue_name >= ? AND queue_name < ? ORDER BY queue_name LIMIT 1`,
  );

  /** The pools of the account's waiting mail: one seek each. */
  const poolPrefixes = (accountKey: number): string[] => {
    const [prefixes, behind] = [[] as string[], `${accountKey}/`];
    for (let from = `${accountKey}.`; ;) {
      const next = nextQueue.get(from, behind);
      if (!next) return prefixes;
      const prefix = next.queueName.slice(0, next.queueName.indexOf("/") + 1);
      prefixes.push(prefix);
      from = behindPrefix(prefix);
    }
  };

  const stretchesOf = ({ accountKey, filter, parts: wanted }: QueueLook): Stretch[] =>
    queueParts
      .filter((part) => wanted.includes(part) && mayHave(part, filter))
      .flatMap((part): Stretch[] => {
        if (part !== "waiting") return [{ part, first: "", behind: "" }];
        const domain = exactOf(filter.domain);
        const pool = exactOf(filter.pool);
        if (domain === null && pool === null)
          return [{ part, first: `${accountKey}.`, behind: `${accountKey}/` }];
        const prefixes = pool === null ? poolPrefixes(accountKey) : [`${accountKey}.${pool}/`];
        return prefixes.map((prefix) =>
          domain === null
            ? { part, first: prefix, behind: behindPrefix(prefix) }
            : { part, first: `${prefix}${domain}`, behind: `${prefix}${domain}\u0001` },
        );
      });

  /** What is left of the stretches after a position; the first begins at the place that it names. */
  const leftOf = (look: QueueLook, after: PageAt["after"]): { stretch: Stretch; from: Place }[] => {
    const [part = 0, queueName = "", time = 0, state = "", bytes = 0, key = 0] = after ?? [];
    const place: Place = {
      queueName: String(queueName),
      time: Number(time),
      state: String(state),
      bytes: Number(bytes),
      key: Number(key),
    };
    return stretchesOf(look).flatMap((stretch) => {
      const from = before(stretch.first);
      if (after === null) return [{ stretch, from }];
      const order = queueParts.indexOf(stretch.part) - Number(part);
      if (order < 0) return [];
      if (order > 0 || (stretch.part === "waiting" && place.queueName < stretch.first))
        return [{ stretch, from }];
      if (stretch.part === "waiting" && place.queueName >= stretch.behind) return [];
      return [{ stretch, from: place }];
    });
  };

  /** Reads of one stretch: the end of what may be walked, and rows up to it. */
  const reading = (look: QueueLook, stretch: Stretch) => {
    const { accountKey, filter, now } = look;
    const { index, range, order, at } = parts[stretch.part];
    const holder = stretch.part === "operator_hold" ? operatorHolderOf(accountKey) : holderOf(accountKey);
    const bind: Params = { ...bound(filter), accountKey, holder, behind: stretch.behind, now };
    const others = Object.entries(conditions).flatMap(([name, sql]) =>
      filter[name as keyof QueueFilter] === undefined ? [] : [sql],
    );
    const from = `FROM recipients r INDEXED BY ${index}`;
    const joined = `${from} CROSS JOIN messages m ON m.key = r.message_key`;
    const where = `${range} AND (${order}) > (${at})`;
    const upTo = `(${order}) <= (${at.replaceAll("@", "@end_")})`;
    return {
      others,
      /** The last of the next `most` rows; undefined: there are fewer. */
      endOf: (place: Place, most: number) =>
        db
          .prepare<[Params], Place>(
            `SELECT ${placeColumns} ${from} WHERE ${where} ORDER BY ${order} LIMIT 1 OFFSET @most`,
          )
          .get({ ...bind, ...place, most: most - 1 }),
      rows<Row>(select: string, tail: string, place: Place, end: Place | undefined, limit: number): Row[] {
        const needsMessage = /\bm\./.test([select, ...others].join(" "));
        const all = [where, ...(end ? [upTo] : []), ...others].join(" AND ");
        const sql = `SELECT ${select} ${needsMessage ? joined : from} WHERE ${all} ${tail.replace("@order", order)}`;
        return db.prepare<[Params], Row>(sql).all({ ...bind, ...place, ...endParams(end), limit });
      },
    };
  };

  const columns = `${placeColumns}, m.id AS messageId, r.to_address AS "to", m.from_address AS "from", r.domain, m.ip_pool AS ipPool,
    r.provider, ${status} AS status, r.lease_owner AS holder, r.attempts, m.queued_at AS queuedAt, r.last_attempt_at AS lastAttemptAt,
    r.due_at AS nextAttemptAt, r.sending_ip AS sendingIp, r.smtp_code AS smtpCode, r.smtp_status AS smtpStatus, r.smtp_response AS smtpResponse`;

  return {
    listQueue({ page, ...look }: QueueLook & { page: PageAt }): PageFound<QueueEntry> {
      const found: QueueEntry[] = [];
      for (const { stretch, from } of leftOf(look, page.after)) {
        const read = reading(look, stretch);
        const end = read.others.length > 0 ? read.endOf(from, walkLimit) : undefined;
        const room = page.limit - found.length;
        const rows = read.rows<EntryRow>(columns, "ORDER BY @order LIMIT @limit", from, end, room + 1);
        found.push(...rows.slice(0, room).map(entryOf));
        const last = rows.length > room ? (rows[room - 1] ?? from) : end;
        if (last) return { rows: found, next: positionOf(stretch.part, last), hasMore: true };
      }
      return { rows: found, next: null, hasMore: false };
    },
    countQueue({ by, after, ...look }: QueueLook & { by: QueueGrouping; after: PageAt["after"] }): {
      groups: QueueGroup[];
      next: (string | number)[] | null;
    } {
      const [first] = leftOf(look, after);
      if (!first) return { groups: [], next: null };
      const { stretch, from } = first;
      const read = reading(look, stretch);
      const end = read.endOf(from, countLimit);
      const sums = `${groupings[by]} AS value, count(*) AS recipients, ${stretch.part.endsWith("_hold") ? "count(*)" : "0"} AS held, min(r.due_at) AS nextAttemptAt`;
      const groups = read.rows<QueueGroup>(sums, "GROUP BY 1", from, end, 0);
      const next = end ? positionOf(stretch.part, end) : behind(stretch);
      return { groups, next: leftOf(look, next).length > 0 ? next : null };
    },
  };
}

function entryOf({
  time: _time,
  state: _state,
  bytes: _bytes,
  queueName: _queue,
  holder,
  ...row
}: EntryRow): QueueEntry {
  const heldBy =
    row.status !== "held" ? null : (holder ?? "") >= firstOperatorHolder ? "operator" : "account";
  return { ...row, heldBy };
}

/** A filter's text where it has no asterisk. */
function exactOf(text: string | undefined): string | null {
  return text === undefined || text.includes("*") ? null : text;
}

/** Behind every scheduled queue of a pool. */
function behindPrefix(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}

/** Only some parts have recipients of a status. */
function mayHave(part: QueuePart, { status: wanted }: QueueFilter): boolean {
  if (wanted === undefined) return true;
  if (wanted === "held") return part === "account_hold" || part === "operator_hold";
  return wanted === "sending" ? part === "sending" : part === "waiting";
}

/** `key` is a place's: an API key is bound under another name. */
function bound(filter: QueueFilter): Params {
  const {
    key,
    provider,
    to,
    tag,
    status: wanted,
    ...patterns
  } = { ...filter, ...globsOf(filter, patternNames) };
  return {
    ...patterns,
    ...(key === undefined ? {} : { key_: key }),
    ...(provider === undefined ? {} : { provider: globOf(provider) }),
    ...(to === undefined ? {} : { to }),
    ...(tag === undefined ? {} : { tag }),
    ...(wanted === undefined ? {} : { status: wanted }),
  };
}

function endParams(end: Place | undefined): Params {
  return end ? Object.fromEntries(Object.entries(end).map(([name, value]) => [`end_${name}`, value])) : {};
}
