// The attempts at an endpoint as they are made. The list has them by event, the newest event first, so a retry stands far
// down: beside the list's beginning, events whose last attempt failed are asked for again once their next one was due.
import type { Cli } from "./cli.ts";
import type { Call } from "./client.ts";
import { rowsOf } from "./lists.ts";
import type { Row } from "./output.ts";
import { untilAnswered } from "./retry.ts";
import { pause } from "./times.ts";

const pollMs = 2000;
const pageSize = 200;
/** Pages that one look reads at most. */
const mostPages = 5;
/** Events whose retry is waited for; of more, the oldest are no longer followed. */
const mostWaiting = 10_000;
/** Retries that one look asks for at most. */
const mostDue = 20;
/** What an attempt takes at most. */
const attemptMs = 15_000;
const mostSeen = 50_000;

/** Attempts after the call, oldest first; never ends by itself. A daemon that restarts is waited for. */
export async function* followDeliveries(
  cli: Cli,
  path: string,
  query: NonNullable<Call["query"]>,
): AsyncGenerator<Row[]> {
  const { clock } = cli.io;
  const seen = new Set<string>();
  /** When the next attempt at an event is over. */
  const waiting = new Map<string, number>();
  const look = async (more: NonNullable<Call["query"]>, pages: number): Promise<Row[]> => {
    const found: Row[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < pages; page++) {
      const { json } = await cli.client.call("GET", path, { query: { ...more, limit: pageSize, cursor } });
      const fresh = rowsOf(json).filter((row) => !seen.has(nameOf(row)));
      found.push(...fresh);
      cursor = json["has_more"] === true && fresh.length > 0 ? String(json["next_cursor"]) : undefined;
      if (cursor === undefined) break;
    }
    for (const row of found.toReversed()) {
      seen.add(nameOf(row));
      note(waiting, row);
    }
    return found;
  };
  await look({ ...query, status: undefined }, mostPages);
  for (;;) {
    await pause(clock, pollMs);
    const now = clock.now();
    const due = [...waiting].filter(([, at]) => at <= now).slice(0, mostDue);
    const rows = await untilAnswered(cli, () => look({ ...query, status: undefined }, mostPages));
    for (const [event] of due) {
      waiting.set(event, now + attemptMs); // late, as those of a paused endpoint are
      rows.push(...(await untilAnswered(cli, () => look({ event_id: event }, 1))));
    }
    forgetOldest(seen, mostSeen);
    forgetOldest(waiting, mostWaiting);
    const wanted = typeof query["status"] === "string" ? query["status"].split(",") : null;
    yield rows
      .filter((row) => wanted === null || wanted.includes(String(row["status"])))
      .toSorted((a, b) => Date.parse(String(a["attempted_at"])) - Date.parse(String(b["attempted_at"])));
  }
}

const nameOf = (row: Row): string =>
  `${String(row["event_id"])} ${String(row["attempt"])} ${String(row["attempted_at"])}`;

function note(waiting: Map<string, number>, row: Row): void {
  const event = String(row["event_id"]);
  const next = row["next_attempt_at"];
  if (row["status"] === "failed" && typeof next === "string") {
    waiting.set(event, Date.parse(next) + attemptMs);
  } else waiting.delete(event);
}

/** In the order in which they were added. */
function forgetOldest(kept: Set<string> | Map<string, number>, most: number): void {
  for (const name of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(name);
  }
}
