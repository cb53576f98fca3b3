// GET /v1/events/tail, on the operator's socket only: one record a line as events are committed, an empty
// line as heartbeat. A backlog is read page by page as fast as the client takes it.
import { z } from "zod";
import { dayMs } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import { isId } from "../../ids.ts";
import type { EventFilter } from "../../model/event.ts";
import type { Store } from "../../store/store.ts";
import type { RouteDeps } from "../deps.ts";
import { present } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { keepAlive, type Stream } from "../streams.ts";
import { eventList, eventSchema, eventText } from "./events.ts";

const pageSize = 200;
/** An event is committed at most this long after it occurred. */
const lateMs = dayMs;

const query = z.object({ after: z.string().max(1000).optional(), event: eventList.optional() });

export function tailRoutes({ store, clock, streams, log }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/events/tail",
      summary: "Stream events as they are recorded, one a line",
      answers: { 200: { "application/x-ndjson": eventSchema } },
      lastModifiedFrom: "always",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query,
      body: null,
      async handle(call) {
        const { after, event } = call.query;
        const accountKey = call.account.key;
        const { occurredAfter, ...start } = await startOf(store, accountKey, after);
        const stream = streams.open();
        stream.write(""); // the answer begins now, not with the first event
        keepAlive(clock, stream);
        const filter: EventFilter = present({ types: event, order: "asc" as const, occurredAfter });
        follow(store, accountKey, filter, start, stream).catch((error: unknown) => {
          log.error({ err: String(error) }, "a stream of events ended early");
          stream.body.destroy();
        });
        return { status: 200, headers: { "content-type": "application/x-ndjson" }, body: stream.body };
      },
    }),
  ];
}

interface Start {
  cursor: string | null;
  /** Events up to this one are left out. */
  afterSeq: number;
  /** Where a walk without a cursor may begin. */
  occurredAfter?: number;
}

/** From a cursor on, from after an event, or from the end as it is now. */
async function startOf(store: Store, accountKey: number, after: string | undefined): Promise<Start> {
  if (after !== undefined && !isId("evt", after)) {
    await checkCursor(store, accountKey, after);
    return { cursor: after, afterSeq: 0 };
  }
  // A page without events ends where the events do, and says so in its cursor.
  const page = await store.listEvents(accountKey, { eventId: after ?? "" }, { limit: 1, cursor: null });
  if (after === undefined) return { cursor: page.next, afterSeq: 0 };
  const [event] = page.rows;
  if (!event) throw new Refusal("invalid_request", "There is no such event.", { field: "after" });
  const { occurred_at: occurredAt } = JSON.parse(event.body) as { occurred_at: string };
  return { cursor: null, afterSeq: event.seq, occurredAfter: Date.parse(occurredAt) - lateMs };
}

/** Refused before the answer begins; a client that follows usually gives an event's id. */
async function checkCursor(store: Store, accountKey: number, cursor: string): Promise<void> {
  try {
    await store.listEvents(accountKey, {}, { limit: 1, cursor });
  } catch (error) {
    if (!(error instanceof Refusal) || error.extras.field !== "cursor") throw error;
    const words = "after is neither an event's id (evt_ and 26 characters) nor a cursor of this list.";
    throw new Refusal("invalid_request", words, { field: "after" });
  }
}

async function follow(
  store: Store,
  accountKey: number,
  filter: EventFilter,
  start: Pick<Start, "cursor" | "afterSeq">,
  stream: Stream,
): Promise<void> {
  let { cursor } = start;
  let news = true;
  let wake = (): void => undefined;
  let open = true;
  const unsubscribe = store.onCommit(({ events }) => {
    if (!events) return;
    news = true;
    wake();
  });
  stream.onEnd(() => {
    open = false;
    unsubscribe();
    wake();
  });
  while (open) {
    if (!news) await new Promise<void>((resolve) => void (wake = resolve));
    news = false;
    const page = await store.listEvents(accountKey, filter, { limit: pageSize, cursor });
    const fresh = page.rows.filter(({ seq }) => seq > start.afterSeq);
    for (const event of fresh) if (!stream.write(eventText(event))) return;
    cursor = page.next ?? cursor;
    news ||= page.hasMore;
    await stream.ready();
  }
}
