// Shaping rules that were set while the program ran, one row a name.
import type { Database, Statement } from "better-sqlite3";
import { asc, gt, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { SetShapingRule, ShapingRule } from "../../model/shaping.ts";
import { nothing } from "../changes.ts";
import type { ShapingStore } from "../interface/shaping.ts";
import { none, noun } from "./noun.ts";
import { shapingRules as table } from "./schema/appliance.ts";

const columns =
  "name, connections, per_second AS perSecond, messages_per_connection AS messagesPerConnection, tls, updated_at AS updatedAt";
const silent: ShapingRule = { connections: null, perSecond: null, messagesPerConnection: null, tls: null };

function createShapingWrites(db: Database) {
  const one: Statement<[string], SetShapingRule> = db.prepare(
    `SELECT ${columns} FROM shaping_rules WHERE name = ?`,
  );
  const put = db.prepare(
    `INSERT OR REPLACE INTO shaping_rules (name, connections, per_second, messages_per_connection, tls, updated_at)
     VALUES (@name, @connections, @perSecond, @messagesPerConnection, @tls, @updatedAt)`,
  );
  const remove = db.prepare("DELETE FROM shaping_rules WHERE name = ?");
  return {
    setShapingRule(arg: { name: string; change: Partial<ShapingRule>; at: number }): SetShapingRule | null {
      const { name, change, at } = arg;
      const rule: SetShapingRule = { ...silent, ...one.get(name), ...change, name, updatedAt: at };
      const { connections, perSecond, messagesPerConnection, tls } = rule;
      if ([connections, perSecond, messagesPerConnection, tls].every((value) => value === null)) {
        remove.run(name);
        return null;
      }
      put.run(rule);
      return rule;
    },
    unsetShapingRule: ({ name }: { name: string }): boolean => remove.run(name).changes > 0,
  };
}

function createShapingLists(client: Database) {
  const all = drizzle({ client })
    .select()
    .from(table)
    .where(gt(table.name, sql.placeholder("after")))
    .orderBy(asc(table.name))
    .prepare();
  return { shapingRules: (arg: { after: string }): SetShapingRule[] => all.all(arg) };
}

export const shaping = noun({
  commands: createShapingWrites,
  touches: {
    setShapingRule: nothing, // its answers are composed on each request
    unsetShapingRule: nothing,
  },
  lookups: none,
  lists: createShapingLists,
  calls: ({ write, lists }): ShapingStore => ({
    shapingRules: () => lists.shapingRules({ after: "" }),
    setShapingRule: (name, change, at) => write.setShapingRule({ name, change, at }),
    unsetShapingRule: (name) => write.unsetShapingRule({ name }),
  }),
});
