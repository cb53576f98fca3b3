// What a day has room for in its lists, asked while it is counted: a sender who names another recipient domain or another
// tag in each message would otherwise leave as much to fold as he sends, and every reading waits for a fold. What a full
// list does not have counts as its rest at once, where the account's own list is full too and does not have it; who comes
// first is a list's for the day, as in the fold (stats-fold.ts). What is not known here the fold sorts out.
import type { Database } from "better-sqlite3";
import { statsScopes } from "../../model/statistics.ts";
import { dayOfQuarter, placeKeys, quarterOf, type StatsRow } from "../counters.ts";
import { rowKeyOf, type RowKey } from "../day-counts.ts";
import { keysADay, otherKey, rowIs } from "./stats-fold.ts";

/** Of all lists, some 10 MB; what was read first is forgotten, and read again when it is asked for. */
const mostKeys = 100_000;
/** Then all are forgotten. */
const mostFacts = 10_000;

interface Day {
  day: number;
  lists: Map<string, Set<string>>;
  keys: number;
  /** Facts that were looked at, as they are counted. */
  placed: Map<string, string>;
}

export function createStatsKeys(db: Database) {
  const keysOf = db
    .prepare<[...RowKey, number], string>(
      `SELECT key FROM stats_days WHERE ${rowIs} AND key <> '${otherKey}' LIMIT ?`,
    )
    .pluck();
  const emptyDay = (day: number): Day => ({ day, lists: new Map(), keys: 0, placed: new Map() });
  let today = emptyDay(0);

  const keep = (more: number): void => {
    today.keys += more;
    for (const [name, keys] of today.lists) {
      if (today.keys <= mostKeys || today.lists.size === 1) return;
      today.lists.delete(name);
      today.keys -= keys.size;
    }
  };
  const listOf = (list: Omit<StatsRow, "key">): Set<string> => {
    const rowKey = rowKeyOf(today.day, list);
    const name = rowKey.join("\n");
    let keys = today.lists.get(name);
    if (!keys) {
      keys = new Set(keysOf.all(...rowKey, keysADay));
      today.lists.set(name, keys);
      keep(keys.size);
    }
    return keys;
  };
  /** False: the list is full and does not have it. */
  const takes = (list: Omit<StatsRow, "key">, key: string): boolean => {
    const keys = listOf(list);
    if (keys.has(key)) return true;
    if (keys.size >= keysADay) return false;
    keys.add(key);
    keep(1);
    return true;
  };
  const place = (list: Omit<StatsRow, "key">, key: string): string => {
    const ofAll = { ...list, scope: statsScopes.all, scopeKey: "" };
    const [own, all] = [takes(list, key), takes(ofAll, key)];
    return own || all ? key : otherKey;
  };

  /** The facts of something that happened at `at`, as they are counted. */
  return (facts: string, at: number): string => {
    const day = dayOfQuarter(quarterOf(at));
    if (day === today.day - 1) return facts; // few, about midnight
    if (day !== today.day) today = emptyDay(day);
    let placed = today.placed.get(facts);
    if (placed === undefined) {
      if (today.placed.size >= mostFacts) today.placed.clear();
      placed = placeKeys(facts, place);
      today.placed.set(facts, placed);
    }
    return placed;
  };
}
