// GET /v1/events/tail, on the operator's socket only: one record a line as events are committed, an empty
// line as heartbeat. A backlog is read page by page as fast as the client takes it.
import { z } from "zod";
import type { Clock, Timer } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import { isId } from "../../ids.ts";
import type { EventFilter, Store } from "../../store/store.ts";
import { present } from "../fields.ts";
import type { Cursors } from "../paging.ts";
import { route, type Route } from "../route.ts";
import type { RouteDeps } from "../routes.ts";
import type { Stream } from "../streams.ts";
import { eventCursorList, eventList, eventText } from "./events.ts";

const heartbeatMs = 15_000;
const pageSize = 200;

const query = z.object({ after: z.string().max(1000).optional(), event: eventList.optional() });

export function tailRoutes({ store, clock, cursors, streams, log }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/events/tail",
      scopes: ["admin"],
      bucket: "default",
      doors: "admin",
      query,
      body: null,
      async handle(call) {
        const { after, event } = call.query;
        const accountKey = call.account.key;
        const position = await startOf(store, cursors, accountKey, after);
        const stream = streams.open();
        stream.write(""); // the answer begins now, not with the first event
        beat(clock, stream);
        const filter: EventFilter = present({ types: event, order: "asc" as const });
        follow(store, accountKey, filter, position, stream).catch((error: unknown) => {
          log.error({ err: String(error) }, "a stream of events ended early");
          stream.body.destroy();
        });
        return { status: 200, headers: { "content-type": "application/x-ndjson" }, body: stream.body };
      },
    }),
  ];
}

/** The position after an event, that of a cursor, or the end as it is now. */
async function startOf(
  store: Store,
  cursors: Cursors,
  accountKey: number,
  after: string | undefined,
): Promise<string> {
  if (after !== undefined && !isId("evt", after)) return cursors.open(eventCursorList("asc"), after, "after");
  const filter: EventFilter = after === undefined ? { order: "desc" } : { eventId: after };
  const { rows } = await store.listEvents(accountKey, filter, { limit: 1, cursor: null });
  if (after !== undefined && !rows[0])
    throw new Refusal("invalid_request", "There is no such event.", { field: "after" });
  return String(rows[0]?.seq ?? 0);
}

async function follow(
  store: Store,
  accountKey: number,
  filter: EventFilter,
  start: string,
  stream: Stream,
): Promise<void> {
  let position = start;
  let news = true;
  let wake = (): void => undefined;
  const unsubscribe = store.onCommit(({ events }) => {
    if (!events) return;
    news = true;
    wake();
  });
  let open = true;
  stream.onEnd(() => {
    open = false;
    unsubscribe();
    wake();
  });
  while (open) {
    if (!news) await new Promise<void>((resolve) => void (wake = resolve));
    news = false;
    const page = await store.listEvents(accountKey, filter, { limit: pageSize, cursor: position });
    for (const event of page.rows) if (!stream.write(eventText(event))) return;
    position = page.next ?? position;
    news ||= page.hasMore;
    await stream.ready();
  }
}

function beat(clock: Clock, stream: Stream): void {
  let timer: Timer;
  const arm = (): void => {
    timer = clock.after(heartbeatMs, () => {
      if (stream.write("")) arm();
    });
  };
  arm();
  stream.onEnd(() => timer.cancel());
}
