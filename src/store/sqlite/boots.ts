// Boots: one row a start of the daemon, which its heartbeat renews, in place of all the rows that it leased.
import type { Database } from "better-sqlite3";
import { nothing } from "../changes.ts";
import type { BootStore } from "../interface/boots.ts";
import { none, noun } from "./noun.ts";

/** SQL, of @owner and @now: the other boots of the owner's node whose leases are over. */
export const overBoots = `SELECT id FROM boots WHERE node = (SELECT node FROM boots WHERE id = @owner)
  AND id <> @owner AND (ended_at IS NOT NULL OR lease_until <= @now)`;

/**
 * At start, under the lock on the data directory: whoever wrote to it before is dead, however long its lease. Of the rows
 * of boots those stay that still hold something.
 */
export function endFormerBoots(db: Database, now: number): void {
  db.prepare("UPDATE boots SET ended_at = ? WHERE ended_at IS NULL").run(now);
  db.prepare(
    `DELETE FROM boots WHERE NOT EXISTS (SELECT 1 FROM recipients WHERE lease_owner = boots.id)
       AND NOT EXISTS (SELECT 1 FROM deliveries WHERE lease_owner = boots.id)`,
  ).run();
}

function createBootWrites(db: Database) {
  const begin = db.prepare("INSERT INTO boots (id, node, lease_until) VALUES (@id, @node, @leaseUntil)");
  const renew = db.prepare("UPDATE boots SET lease_until = @leaseUntil WHERE id = @id AND ended_at IS NULL");
  const end = db.prepare("UPDATE boots SET ended_at = @at WHERE id = @id AND ended_at IS NULL");
  return {
    beginBoot(boot: { id: string; node: string; leaseUntil: number }): void {
      begin.run(boot);
    },
    renewBoot(arg: { id: string; leaseUntil: number }): boolean {
      return renew.run(arg).changes > 0;
    },
    endBoot(arg: { id: string; at: number }): void {
      end.run(arg);
    },
  };
}

export const boots = noun({
  commands: createBootWrites,
  touches: {
    beginBoot: nothing, // a boot shows nowhere
    renewBoot: nothing,
    endBoot: nothing,
  },
  lookups: none,
  lists: none,
  calls: ({ write }): BootStore => ({
    beginBoot: (boot) => write.beginBoot(boot),
    renewBoot: (id, leaseUntil) => write.renewBoot({ id, leaseUntil }),
    endBoot: (id, at) => write.endBoot({ id, at }),
  }),
});
