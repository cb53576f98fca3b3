// The queue of an account, listed and counted a stretch at a time (queue-walk.ts). A filter that no index serves walks at most
// 20,000 rows a call, which then ends early, with more to come.
import type { Database } from "better-sqlite3";
import { patternNames } from "../../model/patterns.ts";
import {
  type QueueEntry,
  type QueueFilter,
  type QueueGroup,
  type QueueGrouping,
  type QueuePart,
} from "../../model/queue-entry.ts";
import type { Cell } from "../message-packing.ts";
import { walkLimit, type PageAt, type PageFound } from "../cursor.ts";
import { globOf, globsOf } from "./glob-filter.ts";
import { firstOperatorHolder, holderOf, isHeld, operatorHolderOf } from "./held-mail.ts";
import { shownState } from "./message-rows.ts";
import {
  behind,
  createQueueWalk,
  parts,
  placeColumns,
  positionOf,
  type Place,
  type QueueLook,
  type Stretch,
} from "./queue-walk.ts";

/** Rows that one call counts: as many groups may be passed on. */
const countLimit = 5_000;

const status = `CASE WHEN ${isHeld} THEN 'held' ELSE ${shownState} END`;

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

export function createQueueLists(db: Database) {
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
    const equal = `${range} AND (${order}) = (${at}) AND r.key > @key`;
    const behindEqual = `${range} AND (${order}) > (${at})`;
    const all = <Row>(sql: string, given: Params): Row[] =>
      db.prepare<[Params], Row>(sql).all({ ...bind, ...given });
    return {
      others,
      /** The last of the next `most` rows; undefined: there are fewer. */
      endOf(place: Place, most: number): Place | undefined {
        const nth = (where: string, n: number): Place | undefined =>
          all<Place>(
            `SELECT ${placeColumns} ${from} WHERE ${where} ORDER BY ${order}, r.key LIMIT 1 OFFSET @n`,
            { ...place, n },
          )[0];
        const end = nth(equal, most - 1);
        if (end) return end;
        const counted = `SELECT count(*) AS n ${from} WHERE ${equal}`;
        return nth(behindEqual, most - 1 - (all<{ n: number }>(counted, { ...place })[0]?.n ?? 0));
      },
      /** `most` null: all. */
      rows<Row>(
        select: string,
        group: string,
        place: Place,
        end: Place | undefined,
        most: number | null,
      ): Row[] {
        const needsMessage = /\bm\./.test([select, ...others].join(" "));
        const read = (where: string, upTo: string | null, limit: number | null): Row[] => {
          const conditions = [where, ...(end && upTo !== null ? [upTo] : []), ...others].join(" AND ");
          const tail = limit === null ? group : `ORDER BY ${order}, r.key LIMIT @limit`;
          return all<Row>(`SELECT ${select} ${needsMessage ? joined : from} WHERE ${conditions} ${tail}`, {
            ...place,
            ...endParams(end),
            ...(limit === null ? {} : { limit }),
          });
        };
        const endsHere = end !== undefined && areEqual(stretch.part, place, end);
        const rows = read(equal, endsHere ? "r.key <= @end_key" : null, most);
        if (endsHere || (most !== null && rows.length >= most)) return rows;
        const upTo = `(${order}, r.key) <= (${`${at}, @key`.replaceAll("@", "@end_")})`;
        const left = read(
          behindEqual,
          upTo.replaceAll("@end_accountKey", "@accountKey"),
          most === null ? null : most - rows.length,
        );
        return [...rows, ...left];
      },
    };
  };

  const columns = `${placeColumns}, m.id AS messageId, r.to_address AS "to", m.from_address AS "from", r.domain, m.ip_pool AS ipPool,
    r.provider, ${status} AS status, r.lease_owner AS holder, r.attempts, m.queued_at AS queuedAt, r.last_attempt_at AS lastAttemptAt,
    r.due_at AS nextAttemptAt, r.sending_ip AS sendingIp, r.smtp_code AS smtpCode, r.smtp_status AS smtpStatus, r.smtp_response AS smtpResponse`;

  const leftOf = createQueueWalk(db);

  return {
    listQueue({ page, ...look }: QueueLook & { page: PageAt }): PageFound<QueueEntry> {
      const found: QueueEntry[] = [];
      for (const { stretch, from } of leftOf(look, page.after)) {
        const read = reading(look, stretch);
        const end = read.others.length > 0 ? read.endOf(from, walkLimit) : undefined;
        const room = page.limit - found.length;
        const rows = read.rows<EntryRow>(columns, "", from, end, room + 1);
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
      const groups = read.rows<QueueGroup>(sums, "GROUP BY 1", from, end, null);
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

/** In the columns of the part's index. */
function areEqual(part: QueuePart, a: Place, b: Place): boolean {
  if (part === "sending") return true;
  const held = a.time === b.time && a.bytes === b.bytes;
  return part === "waiting" ? held && a.queueName === b.queueName && a.state === b.state : held;
}

function endParams(end: Place | undefined): Params {
  return end ? Object.fromEntries(Object.entries(end).map(([name, value]) => [`end_${name}`, value])) : {};
}
