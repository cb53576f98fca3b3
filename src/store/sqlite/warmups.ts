// The warm-up of addresses: what each has sent to a provider on a day. A count is written in the transaction of the
// outcome that it counts (settlement.ts). An address that leaves its pool keeps the counts of the day.
import type { Database, Statement } from "better-sqlite3";
import type { WarmupCount, WarmupSend } from "../../model/warmup.ts";
import { everyone } from "../changes.ts";
import type { WarmupStore } from "../interface/warmups.ts";
import { none, noun } from "./noun.ts";

export function createWarmupCount(db: Database) {
  const count = db.prepare(
    `INSERT INTO warmup_counts (address, provider, day, sent) VALUES (@address, @provider, @day, 1)
     ON CONFLICT (day, address, provider) DO UPDATE SET sent = sent + 1`,
  );
  return { countWarmup: (send: WarmupSend): void => void count.run(send) };
}

function createWarmupWrites(db: Database) {
  const drop = db.prepare("DELETE FROM warmup_counts WHERE day < ?");
  const end: Statement<[number, number], { address: string }> = db.prepare(
    "UPDATE ip_addresses SET warmup_started_at = NULL, updated_at = ? WHERE warmup_started_at < ? RETURNING address",
  );
  return {
    endWarmups({ startedBefore, day, at }: { startedBefore: number; day: number; at: number }): string[] {
      drop.run(day);
      return end.all(at, startedBefore).map(({ address }) => address);
    },
  };
}

export const warmups = noun({
  commands: createWarmupWrites,
  touches: { endWarmups: (touch) => touch(everyone, "ip_pools") },
  lookups(db: Database) {
    const ofDay: Statement<[number], WarmupCount> = db.prepare(
      "SELECT address, provider, day, sent FROM warmup_counts WHERE day = ?",
    );
    return { warmupCounts: (day: number) => ofDay.all(day) };
  },
  lists: none,
  calls: ({ write, lookups }): WarmupStore => ({
    warmupCounts: async (day) => lookups.warmupCounts(day),
    endWarmups: (over) => write.endWarmups(over),
  }),
});
