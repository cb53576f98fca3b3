// Tracking: the keys of its tokens, and what recipients did with their mail. An open or a click is one update of its
// recipient and its event; an unsubscribe is recorded once, and suppresses each time.
import { randomBytes } from "node:crypto";
import type { Database, Statement } from "better-sqlite3";
import type { NewUnsubscribe, NewVisit } from "../../model/reaction.ts";
import type { TrackingKey } from "../../model/tracking.ts";
import { machineVisit } from "../../model/reaction.ts";
import { packEvent } from "../event-packing.ts";
import { nothing } from "../changes.ts";
import type { TrackingStore } from "../interface/tracking.ts";
import { none, noun, type Writing } from "./noun.ts";
import { createReactingRow } from "./sent-messages.ts";

const lastNumber = 255;

/** `at` and `count` are columns; a machine leaves both as they are. */
const visitOf = (at: string, count: string): string =>
  `UPDATE recipients SET ${at} = iif(@machine, ${at}, coalesce(${at}, @at)), ${count} = ${count} + iif(@machine, 0, 1),
     machine_visits = machine_visits | iif(@machine, @bit, 0), updated_at = max(updated_at, @at), last_event_at = max(last_event_at, @eventAt)
   WHERE key = @recipientKey AND message_key = @messageKey`;

function createTrackingWrites(db: Database, { recordEvent, addSuppression }: Writing) {
  const newest: Statement<[], { number: number }> = db.prepare(
    "SELECT number FROM tracking_keys ORDER BY number DESC LIMIT 1",
  );
  const insert = db.prepare("INSERT INTO tracking_keys (number, secret, created_at) VALUES (?, ?, ?)");
  const visit = {
    opened: db.prepare(visitOf("opened_at", "open_count")),
    clicked: db.prepare(visitOf("clicked_at", "click_count")),
  };
  const unsubscribe = db.prepare(
    `UPDATE recipients SET unsubscribed_at = @at, updated_at = max(updated_at, @at), last_event_at = max(last_event_at, @eventAt)
     WHERE key = @recipientKey AND message_key = @messageKey AND unsubscribed_at IS NULL`,
  );
  const stands = db.prepare("SELECT 1 FROM accounts WHERE key = ? AND status <> 'deleted'");
  return {
    addTrackingKey({ at }: { at: number }): TrackingKey | null {
      const number = (newest.get()?.number ?? -1) + 1;
      if (number > lastNumber) return null;
      const secret = randomBytes(32);
      insert.run(number, secret, at);
      return { number, secret: new Uint8Array(secret), createdAt: at };
    },
    recordVisits(visits: NewVisit[]): void {
      for (const { kind, machine, recipientKey, messageKey, at, event } of visits) {
        const eventAt = event.occurredAt;
        const bit = machineVisit[kind];
        const values = { recipientKey, messageKey, at, eventAt, bit, machine: machine ? 1 : 0 };
        if (visit[kind].run(values).changes > 0) recordEvent(event);
      }
    },
    recordUnsubscribe({ at, recipient, suppression }: NewUnsubscribe): "recorded" | "already" {
      let recorded = false;
      if (recipient) {
        const { recipientKey, messageKey, event } = recipient;
        const { changes } = unsubscribe.run({ recipientKey, messageKey, at, eventAt: event.occurredAt });
        recorded = changes > 0;
        if (recorded) recordEvent(event);
      }
      if (suppression && stands.get(suppression.accountKey))
        addSuppression({ ...suppression, eventId: recorded ? suppression.eventId : null }, at);
      return recorded ? "recorded" : "already";
    },
  };
}

export const tracking = noun({
  commands: createTrackingWrites,
  touches: {
    addTrackingKey: nothing, // a key shows nowhere
    recordVisits(touch, visits) {
      for (const { at, event } of visits) {
        touch(event.accountKey, "messages", at);
        touch(event.accountKey, "events", at);
      }
    },
    recordUnsubscribe(touch, { at, recipient, suppression }) {
      if (suppression) touch(suppression.accountKey, "suppressions", at);
      if (!recipient) return;
      touch(recipient.event.accountKey, "messages", at);
      touch(recipient.event.accountKey, "events", at);
    },
  },
  lookups(db: Database) {
    const all: Statement<[], Omit<TrackingKey, "secret"> & { secret: Buffer }> = db.prepare(
      "SELECT number, secret, created_at AS createdAt FROM tracking_keys ORDER BY number",
    );
    return {
      reacting: createReactingRow(db),
      trackingKeys: (): TrackingKey[] =>
        all.all().map((row) => ({ ...row, secret: new Uint8Array(row.secret) })),
    };
  },
  lists: none,
  calls: ({ write, lookups, clock }): TrackingStore => ({
    trackingKeys: async () => lookups.trackingKeys(),
    addTrackingKey: (at) => write.addTrackingKey({ at }),
    reactingRecipient: async (message, recipientKey) => lookups.reacting(message, recipientKey, clock.now()),
    recordVisits: (visits) =>
      write.recordVisits(visits.map((one) => ({ ...one, event: packEvent(one.event) }))),
    recordUnsubscribe: (one) =>
      write.recordUnsubscribe(
        one.recipient
          ? { ...one, recipient: { ...one.recipient, event: packEvent(one.recipient.event) } }
          : one,
      ),
  }),
});
