// Boots: one row a start of the daemon, which its heartbeat renews, in place of all the rows that it leased.
import type { Database } from "better-sqlite3";
import { nothing } from "../changes.ts";
import type { BootStore } from "../interface/boots.ts";
import { firstHolder } from "./held-mail.ts";
import { none, noun } from "./noun.ts";

/**
 * SQL of a row with a `lease_owner`, of @owner and @now: its lease is over. Only a boot that lives, or one of another node,
 * has a lease: what is leased to an owner that has no row would never move again.
 */
export const leaseOver = `lease_owner < '${firstHolder}' AND lease_owner <> @owner AND lease_owner NOT IN
    (SELECT id FROM boots WHERE node <> (SELECT node FROM boots WHERE id = @owner) OR (ended_at IS NULL AND lease_until > @now))`;

/** Under the lock on the data directory: whoever wrote to it before is dead, however long its lease. */
export function endFormerBoots(db: Database): void {
  db.prepare("DELETE FROM boots").run();
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
