// The events of an account as they are recorded, for a command that follows them: over the admin socket the daemon's own
// stream, from elsewhere the list, which is asked again from its last cursor on. A lost connection is made again, and the
// events go on after the last one: none is left out and none comes twice.
import type { Cli } from "./cli.ts";
import { CliFault } from "./fault.ts";
import { rowsOf } from "./lists.ts";
import type { Row } from "./output.ts";
import { firstWaitMs, longestWaitMs, lostBy } from "./retry.ts";
import { pause } from "./times.ts";

export interface FollowedEvent {
  id: string;
  type: string;
  /** As webhooks get it, byte for byte. */
  body: string;
}

export interface Following {
  /** An event's id: those after it; the ones to come where none is given. */
  after?: string | undefined;
  types?: readonly string[] | undefined;
  /** The connection is lost, and made again in so many seconds. */
  onLost(why: string, seconds: number): void;
}

const pollMs = 1000;
const pageSize = 1000;
/** An event is recorded at most this long after it occurred. */
const lateMs = 24 * 3_600_000;

/** They never end by themselves. Throws CliFault where the daemon cannot be reached at all, or refuses. */
export async function followEvents(cli: Cli, following: Following): Promise<AsyncGenerator<FollowedEvent>> {
  const start = await startOf(cli, following.after);
  return cli.globals.url === undefined ? streamed(cli, start, following) : polled(cli, start, following);
}

interface Start {
  /** Where the list goes on: its end, for events to come. */
  cursor: string | null;
  /** The event that others are to come after. */
  after: Row | null;
}

/** Asked before all else: it shows that the daemon answers, and that the event is there. */
async function startOf(cli: Cli, after: string | undefined): Promise<Start> {
  const query = { event_id: after ?? "none", limit: 1 };
  const { json } = await cli.client.call("GET", "/v1/events", { query });
  if (after === undefined) return { cursor: cursorOf(json), after: null };
  const [event] = rowsOf(json);
  if (!event) throw new CliFault(3, `event ${after} was not found`, ["Events are kept for 30 days."]);
  return { cursor: null, after: event };
}

async function* streamed(cli: Cli, start: Start, following: Following): AsyncGenerator<FollowedEvent> {
  const retry = createRetry(cli, following);
  const { types } = following;
  let after = start.after === null ? start.cursor : textOf(start.after["event_id"]);
  for (;;) {
    let why = "the daemon ended the stream";
    retry.begins();
    try {
      const query = { after: after ?? undefined, event: types?.join(",") };
      for await (const line of cli.client.lines("/v1/events/tail", query)) {
        const event = eventOf(line);
        if (event === null) continue;
        yield event;
        after = event.id;
      }
    } catch (error) {
      why = lostBy(error);
    }
    await retry.wait(why);
  }
}

async function* polled(cli: Cli, start: Start, following: Following): AsyncGenerator<FollowedEvent> {
  const retry = createRetry(cli, following);
  const wanted = following.types === undefined ? null : new Set(following.types);
  const { after } = start;
  let { cursor } = start;
  let passed = after === null;
  const occurred = Date.parse(textOf(after?.["occurred_at"]) ?? "");
  const since = after === null ? {} : { occurred_after: new Date(occurred - lateMs).toISOString() };
  for (;;) {
    retry.begins();
    try {
      const query = { ...since, limit: pageSize, cursor: cursor ?? undefined };
      const { json } = await cli.client.call("GET", "/v1/events", { query });
      for (const { deliveries: _deliveries, ...record } of rowsOf(json)) {
        const event = passed ? eventOf(JSON.stringify(record)) : null;
        if (event !== null && (wanted === null || wanted.has(event.type))) yield event;
        passed ||= record["event_id"] === after?.["event_id"];
      }
      cursor = cursorOf(json) ?? cursor;
      if (json["has_more"] === true) continue;
      passed = true;
      await pause(cli.io.clock, pollMs);
    } catch (error) {
      await retry.wait(lostBy(error));
    }
  }
}

interface Retry {
  begins(): void;
  wait(why: string): Promise<void>;
}

/** Twice as long each time, until a connection has held for a while. */
function createRetry(cli: Cli, { onLost }: Pick<Following, "onLost">): Retry {
  const { clock } = cli.io;
  let waitMs = firstWaitMs;
  let began = 0;
  return {
    begins: () => void (began = clock.monotonic()),
    async wait(why) {
      if (clock.monotonic() - began > longestWaitMs) waitMs = firstWaitMs;
      onLost(why, waitMs / 1000);
      await pause(clock, waitMs);
      waitMs = Math.min(2 * waitMs, longestWaitMs);
    },
  };
}

function eventOf(record: string): FollowedEvent | null {
  const { event_id: id, event: type } = parsed(record);
  return typeof id === "string" && typeof type === "string" ? { id, type, body: bodyOf(record) } : null;
}

/** A record is the body with its deliveries at the end; nothing after their name is text from outside. */
function bodyOf(record: string): string {
  const at = record.lastIndexOf(',"deliveries":[');
  return at === -1 ? record : `${record.slice(0, at)}}`;
}

function parsed(line: string): Row {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === "object" ? (value as Row) : {};
  } catch {
    return {};
  }
}

function cursorOf(body: Row): string | null {
  return textOf(body["next_cursor"]);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
