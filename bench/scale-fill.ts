// Fills a data directory as years of use would: one message that was delivered and one that waits are sent through
// the running product, and their rows, just as it wrote them, are multiplied in the order of their keys, through the
// schema's own tables and indexes. The history is older than the retention of content: it has neither bytes nor
// dialogues, and young enough that nothing of it is removed meanwhile. Addresses are spread over the alphabet, so that indexes on them are filled at random places, as in use.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import { queuePrefixOf } from "../src/queue/queue-name.ts";
import { databaseName, openWriting } from "../src/store/sqlite/engine/open.ts";

export interface Sizes {
  /** Finished: delivered. */
  messages: number;
  /** At most five of a message: its delivery, then as many openings. */
  events: number;
  /** Deferred once, due in the hours to come, over up to 10,000 domains; with their bytes. */
  queued: number;
  suppressed: number;
}

export interface Filled extends Sizes {
  dataDir: string;
  seconds: number;
  bytes: number;
  /** Of the history: its addresses, of which each had a few messages. */
  people: number;
  /** The first history message has the key after this one. */
  base: number;
}

/** Of the scheduled queues of the first account's mail. */
export const queuePrefix = queuePrefixOf(1, "default");
const mostLanes = 10_000;
/** Enough of them in a scheduled queue that each start of the bench finds one that it can make due. */
const leastInLane = 20;
/** The history's domains, those that have a receiver: d0.test … */
export const receivers = 20;
const keptDomain = "kept.test";
const messagesOfPerson = 4;
const historyDays = 28;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const piece = 100_000;
const prime = 2_654_435_761;
const cacheKib = 2 * 1024 * 1024;

/** Local part number `n` as SQL and as text: even numbers below 2³² in hexadecimal, far apart for neighbours. */
const localSql = (n: string): string => `printf('%08x', (${n} * ${prime}) & 4294967294)`;
const localText = (n: number): string =>
  Number((BigInt(n) * BigInt(prime)) & 4294967294n)
    .toString(16)
    .padStart(8, "0");
export const personAddress = (n: number): string => `${localText(n)}@d${n % receivers}.test`;
/** Odd numbers: nobody on the list is in the history. */
export const suppressedAddress = (n: number, of: number): string =>
  `${(n * spacing(of) + 1).toString(16).padStart(8, "0")}@d${n % 1000}.test`;
const spacing = (of: number): number => 2 * Math.max(1, Math.floor(2 ** 31 / Math.max(1, of)));
export const historyId = (n: number): string => `msg_01h${String(n).padStart(23, "0")}`;

type Row = Record<string, number | string | Buffer | null>;
/** Columns that are not the template's: SQL over `n` (the row's number), `p` (its person), `at` (its time). */
type Changes = Record<string, string>;

/** `dataDir` holds what the product wrote for one delivered and one deferred message to t@d0.test. */
export function fill(dataDir: string, sizes: Sizes, now: number): Filled {
  const began = performance.now();
  const path = join(dataDir, databaseName);
  const db = openWriting(path);
  db.pragma("journal_mode = DELETE");
  db.pragma("journal_mode = OFF");
  db.pragma("synchronous = OFF");
  db.pragma(`cache_size = -${cacheKib}`);
  // Each start of the bench brings example.test with it; what waits is signed by a domain that stays.
  db.exec(`UPDATE domains SET name = '${keptDomain}'; UPDATE messages SET signing_domain = '${keptDomain}'`);
  const copy = createCopies(db);
  const base = copy.lastKey;
  const people = Math.max(1, Math.floor(sizes.messages / messagesOfPerson));
  db.exec("BEGIN");
  history(copy, sizes, { base, people, now });
  queue(copy, sizes, { base: base + sizes.messages, now });
  suppressions(db, sizes.suppressed, now);
  // Retention has been here: the history has no content any more, and the two templates are behind it.
  const pass = db.prepare("INSERT OR REPLACE INTO retention_walks (kind, passed) VALUES (?, ?)");
  pass.run("content", base + sizes.messages);
  for (const kind of ["messages", "events"]) pass.run(kind, base);
  for (const [table, number] of [
    ["messages", "key"],
    ["recipients", "key"],
    ["events", "seq"],
  ] as const)
    db.exec(`UPDATE sequences SET last = (SELECT max(${number}) FROM ${table}) WHERE name = '${table}'`);
  db.prepare("UPDATE recipients SET state = 'canceled', due_at = NULL WHERE key = ?").run(
    copy.deferred.recipient["key"],
  );
  db.exec("COMMIT");
  db.close();
  openWriting(path).close(); // a WAL database again
  const seconds = (performance.now() - began) / 1000;
  return { ...sizes, dataDir, seconds, bytes: statSync(path).size, people, base };
}

interface Copies {
  lastKey: number;
  delivered: Template;
  deferred: Template;
  /** Rows `from` to `to` of a table. */
  rows(table: string, of: Row, changes: Changes, bind: Row, count: number): void;
}

interface Template {
  message: Row;
  recipient: Row;
  attempt: Row;
  event: Row;
  content: Row;
}

function createCopies(db: Database): Copies {
  const one = (sql: string, ...bind: unknown[]): Row => {
    const row = db.prepare<unknown[], Row>(sql).get(...bind);
    if (!row) throw new Error(`the product wrote no such row: ${sql}`);
    return row;
  };
  const template = (state: string): Template => {
    const recipient = one("SELECT * FROM recipients WHERE state = ? ORDER BY key LIMIT 1", state);
    const key = recipient["message_key"];
    return {
      recipient,
      message: one("SELECT * FROM messages WHERE key = ?", key),
      attempt: one("SELECT * FROM attempts WHERE message_key = ?", key),
      event: one("SELECT * FROM events WHERE message_key = ?", key),
      content: one("SELECT * FROM content WHERE message_key = ?", key),
    };
  };
  return {
    lastKey: Number(one("SELECT max(key) AS key FROM messages")["key"]),
    delivered: template("delivered"),
    deferred: template("deferred"),
    rows(table, of, changes, bind, count) {
      const columns = Object.keys(of);
      const unknown = Object.keys(changes).filter((name) => !columns.includes(name));
      if (unknown.length > 0) throw new Error(`${table} has no column ${unknown.join(", ")}`);
      const statement = db.prepare(
        `INSERT INTO ${table} (${columns.join(", ")})
         WITH RECURSIVE s (n) AS (SELECT @from UNION ALL SELECT n + 1 FROM s WHERE n + 1 < @to)
         SELECT ${columns.map((name) => changes[name] ?? `@${name}`).join(", ")} FROM s`,
      );
      const kept = Object.fromEntries(
        columns.filter((name) => !changes[name]).map((name) => [name, of[name]]),
      );
      for (let from = 0; from < count; from += piece)
        statement.run(integers({ ...kept, ...bind, from, to: Math.min(count, from + piece) }));
    },
  };
}

/** Whole numbers as such: plain ones are bound as floating point, which is not what the columns hold. */
function integers(row: Row): Record<string, Row[string] | bigint> {
  const whole = (value: Row[string] | undefined) =>
    typeof value === "number" && Number.isInteger(value) ? BigInt(value) : (value ?? null);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, whole(value)]));
}

/** The text of an event with another id, message and address. */
const bodyOf = (eventId: string, messageId: string, address: string): string =>
  `replace(replace(replace(@old_body, @old_event, ${eventId}), @old_message, ${messageId}), @old_to, ${address})`;

const oldOf = ({ message, recipient, event }: Template): Row => ({
  old_body: event["body"] ?? null,
  old_event: event["id"] ?? null,
  old_message: message["id"] ?? null,
  old_to: recipient["to_address"] ?? null,
});

const idOf = (prefix: string, n: string): string => `printf('${prefix}_01h%023d', ${n})`;

interface Place {
  base: number;
  now: number;
}

function history(copy: Copies, sizes: Sizes, { base, people, now }: Place & { people: number }): void {
  const { delivered } = copy;
  const { messages, events } = sizes;
  if (messages === 0) return;
  const began = now - historyDays * dayMs;
  const at = `(@began + CAST(n * @step AS INTEGER))`;
  const bind: Row = { base, people, began, step: ((historyDays - 5) * dayMs) / messages };
  const person = "(n % @people)";
  const address = `(${localSql(person)} || '@d' || (${person} % ${receivers}) || '.test')`;
  const domain = `('d' || (${person} % ${receivers}) || '.test')`;
  const key = "@base + 1 + n";
  const messageId = idOf("msg", "n");
  copy.rows(
    "messages",
    delivered.message,
    {
      key,
      id: messageId,
      created_at: at,
      queued_at: at,
      content_kind: "NULL",
      content_name: "NULL",
      message_id_header: `printf('<%026d@example.test>', n)`,
    },
    bind,
    messages,
  );
  copy.rows(
    "recipients",
    delivered.recipient,
    {
      key,
      message_key: key,
      to_address: address,
      rcpt_to: address,
      canonical: address,
      domain,
      queue_name: `('${queuePrefix}' || ${domain})`,
      last_attempt_at: at,
      last_event_at: at,
      updated_at: at,
    },
    bind,
    messages,
  );
  copy.rows(
    "attempts",
    delivered.attempt,
    {
      key,
      id: idOf("att", "n"),
      message_key: key,
      recipient_key: key,
      started_at: at,
      ended_at: at,
      trace: "NULL",
    },
    bind,
    messages,
  );
  const each = Math.max(1, Math.round(events / messages));
  const ofEvent = (text: string): string => text.replaceAll(/\bn\b/g, "(n / @each)");
  const eventId = idOf("evt", "n");
  copy.rows(
    "events",
    delivered.event,
    {
      seq: "@base + 1 + n",
      id: eventId,
      message_key: ofEvent(key),
      recipient: ofEvent(address),
      occurred_at: ofEvent(at),
      received_at: ofEvent(at),
      type: "iif(n % @each = 0, 'message.delivered', 'message.opened')",
      body: bodyOf(eventId, ofEvent(messageId), ofEvent(address)),
    },
    { ...bind, ...oldOf(delivered), each },
    events,
  );
}

function queue(copy: Copies, sizes: Sizes, { base, now }: Place): void {
  const { deferred } = copy;
  const bind: Row = { base, now, events: sizes.events, old: sizes.messages };
  const key = "@base + 1 + n";
  const scheduledQueues = Math.min(mostLanes, Math.floor(sizes.queued / leastInLane));
  const domain = `('d' || (n % ${scheduledQueues}) || '.test')`;
  const address = `(${localSql("(n + 7)")} || '@' || ${domain})`;
  const at = `(@now - ${2 * hourMs} + n * ${hourMs} / ${Math.max(1, sizes.queued)})`;
  const messageId = idOf("msg", "(@old + n)");
  const attemptId = idOf("att", "(@old + n)");
  const eventId = idOf("evt", "(@events + n)");
  const copied = (table: string, of: Row, changes: Changes): void =>
    copy.rows(table, of, changes, { ...bind, ...oldOf(deferred) }, sizes.queued);
  const dueAt = `(@now + ${6 * hourMs} + (n * ${prime}) % ${10 * hourMs})`;
  copied("messages", deferred.message, {
    key,
    id: messageId,
    created_at: at,
    queued_at: at,
    message_id_header: `printf('<%026d@example.test>', @old + n)`,
  });
  copied("content", deferred.content, { message_key: key });
  copied("recipients", deferred.recipient, {
    key,
    message_key: key,
    to_address: address,
    rcpt_to: address,
    canonical: address,
    domain,
    queue_name: `('${queuePrefix}' || ${domain})`,
    due_at: dueAt,
    last_attempt_at: at,
    last_event_at: at,
    updated_at: at,
  });
  copied("attempts", deferred.attempt, {
    key,
    id: attemptId,
    message_key: key,
    recipient_key: key,
    started_at: at,
    ended_at: at,
    next_attempt_at: dueAt,
  });
  copied("events", deferred.event, {
    seq: "@base - @old + @events + 1 + n",
    id: eventId,
    message_key: key,
    recipient: address,
    occurred_at: at,
    received_at: at,
    body: bodyOf(eventId, messageId, address),
  });
}

/** At random places, as bounces come: a list that is written in order is a third smaller than one that grew. */
function suppressions(db: Database, count: number, now: number): void {
  const step = spacing(count);
  const jump = coprime(count);
  const insert = db.prepare(
    `INSERT INTO suppressions (account_key, canonical, email, reason, source, description, message_id, event_id,
       smtp_code, smtp_status, expires_at, created_at, updated_at)
     WITH RECURSIVE s (n) AS (SELECT @from UNION ALL SELECT n + 1 FROM s WHERE n + 1 < @to)
     SELECT 1, a, a, 'hard_bounce', 'system', NULL, ${idOf("msg", "k")}, ${idOf("evt", "k")}, '550', '5.1.1', NULL, @now, @now
     FROM (SELECT k, printf('%08x@d%d.test', k * @step + 1, k % 1000) AS a FROM (SELECT (n * @jump) % @count AS k FROM s))`,
  );
  for (let from = 0; from < count; from += piece)
    insert.run(integers({ from, to: Math.min(count, from + piece), now, step, jump, count }));
}

/** A step that comes to each of `count` places once. */
function coprime(count: number): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  let jump = Math.max(1, Math.floor(count * 0.6180339887));
  while (divisor(jump, count) > 1) jump++;
  return jump;
}
