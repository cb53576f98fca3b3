// The pauses of parts of the queue: a row each, read whole at the start and after each change.
import type { Database } from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { PauseOf, QueuePause } from "../../model/queue-pause.ts";
import { nothing } from "../changes.ts";
import type { QueuePauseStore } from "../interface/queue-pauses.ts";
import { none, noun } from "./noun.ts";
import { queuePauses as table } from "./schema/appliance.ts";

/** In place of the account of a pause that is every account's. */
const everyAccount = 0;
const rowOf = <P extends PauseOf>(of: P) => ({ ...of, accountKey: of.accountKey ?? everyAccount });

function createQueuePauseWrites(db: Database) {
  const expire = db.prepare("DELETE FROM queue_pauses WHERE until <= ?");
  const put = db.prepare(
    `INSERT INTO queue_pauses (scope, account_key, name, since, until) VALUES (@scope, @accountKey, @name, @since, @until)
     ON CONFLICT DO UPDATE SET until = excluded.until`,
  );
  const remove = db.prepare(
    "DELETE FROM queue_pauses WHERE scope = @scope AND account_key = @accountKey AND name = @name",
  );
  return {
    putQueuePause({ pause, now }: { pause: QueuePause; now: number }): void {
      expire.run(now);
      put.run(rowOf(pause));
    },
    removeQueuePause: (of: PauseOf): boolean => remove.run(rowOf(of)).changes > 0,
  };
}

function createQueuePauseLookups(client: Database) {
  const all = drizzle({ client }).select().from(table).prepare();
  return {
    queuePauses: (): QueuePause[] =>
      all
        .all()
        .map((row) => ({ ...row, accountKey: row.accountKey === everyAccount ? null : row.accountKey })),
  };
}

export const queuePauses = noun({
  commands: createQueuePauseWrites,
  touches: {
    putQueuePause: nothing, // the answers that show it are composed on each request
    removeQueuePause: nothing,
  },
  lookups: createQueuePauseLookups,
  lists: none,
  calls: ({ write, lookups }): QueuePauseStore => ({
    queuePauses: async () => lookups.queuePauses(),
    putQueuePause: (pause, now) => write.putQueuePause({ pause, now }),
    removeQueuePause: (of) => write.removeQueuePause(of),
  }),
});
