// Records events: the body as it was written, once, and the deliveries of it (webhook-fan-out.ts). `seq` is the order of
// commits (sequences.ts).
import type { Database } from "better-sqlite3";
import type { NewEvent } from "../../model/event.ts";
import type { Tally } from "../batch-counters.ts";
import { pageAt, pageOf } from "../cursor.ts";
import { packEvent } from "../event-packing.ts";
import type { EventStore } from "../interface/events.ts";
import { createEventLists } from "./event-lists.ts";
import { none, noun, type Writing } from "./noun.ts";
import type { Sequences } from "./sequences.ts";
import { createFanOut } from "./webhook-fan-out.ts";

export function createEventWrites(db: Database, tally: Tally, sequences: Pick<Sequences, "next">) {
  const insert = db.prepare(
    `INSERT INTO events (seq, id, account_key, type, occurred_at, received_at, message_key, recipient, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const fanOut = createFanOut(db, tally);
  return {
    recordEvent(e: NewEvent): void {
      const seq = sequences.next("events");
      insert.run(
        seq,
        e.id,
        e.accountKey,
        e.type,
        e.occurredAt,
        e.receivedAt,
        e.messageKey,
        e.recipient,
        e.body,
      );
      fanOut(seq, e.accountKey, e.typeBit);
      tally.events = true;
      if (e.counters !== 0)
        tally.counted.push({ facts: e.facts, at: e.occurredAt, counters: e.counters, times: 1 });
    },
  };
}

export const events = noun({
  commands: (_db: Database, { recordEvent }: Writing) => ({ recordEvent }),
  touches: {
    recordEvent: (touch, { accountKey, receivedAt }) => touch(accountKey, "events", receivedAt),
  },
  lookups: none,
  lists: createEventLists,
  calls: ({ write, lists }): EventStore => ({
    recordEvent: (event) => write.recordEvent(packEvent(event)),
    accountsWithEvents: (afterSeq) => lists.accountsWithEvents({ afterSeq }),
    listEvents: async (accountKey, filter, page) =>
      pageOf("e", await lists.listEvents({ accountKey, filter, page: pageAt("e", page, ["number"]) })),
  }),
});
