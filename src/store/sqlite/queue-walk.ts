// Where a look at an account's queue goes: stretches of the queue's two indexes, one after the other, and a place in one of
// them. What waits is in the order of scheduled queue and due time; a domain or pool that is named narrows it to its scheduled
// queues. What is held or being sent comes behind.
import type { Database, Statement } from "better-sqlite3";
import { queueParts, type QueueFilter, type QueuePart } from "../../model/queue-entry.ts";
import type { Position } from "../../cursor.ts";
import { firstHolder } from "./held-mail.ts";

/** Rows of one part, in the order of its index. */
export interface Stretch {
  part: QueuePart;
  /** Scheduled queues from `first` to before `behind`; of what waits only. */
  first: string;
  behind: string;
}

const held = {
  range: "r.lease_owner = @holder",
  order: "r.held_since, r.share_bytes",
  at: "@time, @bytes",
};
/**
 * `order` are the columns of the index, behind which the row id is the order, and `at` the same of a place (Place). Rows that
 * are equal in the columns are walked apart from those behind them: no seek is by the columns and the row id at once.
 */
export const parts: Record<QueuePart, { index: string; range: string; order: string; at: string }> = {
  waiting: {
    index: "recipients_waiting",
    range: "r.due_at IS NOT NULL AND r.queue_name < @behind",
    order: "r.queue_name, r.due_at, r.state, r.share_bytes",
    at: "@queueName, @time, @state, @bytes",
  },
  account_hold: { index: "recipients_leased", ...held },
  operator_hold: { index: "recipients_leased", ...held },
  // As many as attempts run.
  sending: {
    index: "recipients_leased",
    range: `r.lease_owner < '${firstHolder}' AND r.account_key = @accountKey`,
    order: "r.account_key",
    at: "@accountKey",
  },
};

/** Where a walk is, behind a row; its own columns of every part. */
export interface Place {
  queueName: string;
  time: number;
  state: string;
  bytes: number;
  key: number;
}
export const placeColumns = `r.queue_name AS queueName, coalesce(r.due_at, r.held_since, 0) AS time, r.state, r.share_bytes AS bytes, r.key`;
const before = (queueName: string): Place => ({ queueName, time: -1, state: "", bytes: -1, key: -1 });

/** The shape of a position: the part's number, and the place. */
export const queuePosition = ["number", "string", "number", "string", "number", "number"] as const;
export const positionOf = (
  part: QueuePart,
  { queueName, time, state, bytes, key }: Place,
): (string | number)[] => [queueParts.indexOf(part), queueName, time, state, bytes, key];

/** Where the stretch has ended. */
export const behind = (stretch: Stretch): (string | number)[] =>
  stretch.part === "waiting"
    ? positionOf(stretch.part, before(stretch.behind))
    : [queueParts.indexOf(stretch.part) + 1, ...positionOf("waiting", before("")).slice(1)];

export interface QueueLook {
  accountKey: number;
  filter: QueueFilter;
  parts: readonly QueuePart[];
  now: number;
}

/** What is left of the stretches after a position; the first begins at the place that it names. */
export function createQueueWalk(db: Database) {
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

  return (look: QueueLook, after: Position | null): { stretch: Stretch; from: Place }[] => {
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
