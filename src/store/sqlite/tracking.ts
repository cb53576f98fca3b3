// The keys of tracked mail's tokens.
import { randomBytes } from "node:crypto";
import type { Database, Statement } from "better-sqlite3";
import type { TrackingKey } from "../../model/tracking.ts";
import { nothing } from "../changes.ts";
import type { TrackingStore } from "../interface/tracking.ts";
import { none, noun } from "./noun.ts";

const lastNumber = 255;

function createTrackingWrites(db: Database) {
  const newest: Statement<[], { number: number }> = db.prepare(
    "SELECT number FROM tracking_keys ORDER BY number DESC LIMIT 1",
  );
  const insert = db.prepare("INSERT INTO tracking_keys (number, secret, created_at) VALUES (?, ?, ?)");
  return {
    addTrackingKey({ at }: { at: number }): TrackingKey | null {
      const number = (newest.get()?.number ?? -1) + 1;
      if (number > lastNumber) return null;
      const secret = randomBytes(32);
      insert.run(number, secret, at);
      return { number, secret: new Uint8Array(secret), createdAt: at };
    },
  };
}

export const tracking = noun({
  commands: createTrackingWrites,
  touches: { addTrackingKey: nothing }, // a key shows nowhere
  lookups(db: Database) {
    const all: Statement<[], Omit<TrackingKey, "secret"> & { secret: Buffer }> = db.prepare(
      "SELECT number, secret, created_at AS createdAt FROM tracking_keys ORDER BY number",
    );
    return {
      trackingKeys: (): TrackingKey[] =>
        all.all().map((row) => ({ ...row, secret: new Uint8Array(row.secret) })),
    };
  },
  lists: none,
  calls: ({ write, lookups }): TrackingStore => ({
    trackingKeys: async () => lookups.trackingKeys(),
    addTrackingKey: (at) => write.addTrackingKey({ at }),
  }),
});
