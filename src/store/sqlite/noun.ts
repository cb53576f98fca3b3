// How a noun declares its calls, once, in its own file: the commands that write (with what each touches for
// Last-Modified), the look-ups by key on the loop's own connection, the lists in the reader's thread, and the calls of
// the Store that are made of them. nouns.ts joins what all of them declare; the dispatch in the threads follows from it.
import type { Database } from "better-sqlite3";
import type { Clock } from "../../clock.ts";
import type { AuditEntry } from "../../model/audit.ts";
import type { NewEvent } from "../../model/event.ts";
import type { NewSuppression, NxdomainRecheck } from "../../model/suppression.ts";
import type { WarmupSend } from "../../model/warmup.ts";
import type { Tally } from "../batch-counters.ts";
import type { Touches } from "../changes.ts";
import type { StatisticsStore } from "../interface/statistics.ts";
import type { Spool } from "./spool.ts";
import type { ByteCache, RowCache } from "../cache.ts";
import type { Space } from "./engine/space.ts";
import type { Answers } from "./idempotency.ts";
import type { Remote } from "./remote.ts";
import type { Sequences } from "./sequences.ts";

/** What commands of several nouns have in common: what they gather in memory, and what one writes for another. */
export interface Writing {
  tally: Tally;
  sequences: Sequences;
  answers: Answers;
  audit: { record(entry: AuditEntry): boolean; purge(before: number, limit: number): number };
  recordEvent(event: NewEvent): void;
  addSuppression(entry: NewSuppression, at: number): unknown;
  addNxdomainRecheck(look: NxdomainRecheck): void;
  countWarmup(send: WarmupSend): void;
}

/** What the calls of every noun are made of. */
export interface Common {
  /** The name of this node, under which is kept what its machine sees. */
  node: string;
  clock: Clock;
  spool: Spool;
  space: Pick<Space, "room">;
  stats: StatisticsStore;
  /** The content of messages whose first attempt is about to read it. */
  content: ByteCache;
  /** Rows that change rarely. */
  rows: RowCache;
  /** Clearing up in pieces once a write is done. */
  after(work: () => Promise<void>): Promise<void>;
  /** Drops, in pieces, what a deleted endpoint left. */
  dropDeliveries(endpointKey: number): Promise<void>;
  /** Copies the write-ahead log into the database. */
  checkpoint(): Promise<void>;
}

export interface Parts<Commands, Lookups, Lists> extends Common {
  write: Remote<Commands>;
  /** Writes that go ahead of a write, in pieces. */
  ahead: Remote<Commands>;
  lookups: Lookups;
  lists: Remote<Lists>;
}

export interface Noun<Commands, Lookups, Lists, Calls> {
  /** Prepared on the one connection that writes; each takes a plain value, and the bytes that go with it. */
  commands(db: Database, writing: Writing): Commands;
  touches: Touches<NoInfer<Commands>>;
  /** Prepared on the loop's own connection: a few microseconds each, served by an index. */
  lookups(db: Database): Lookups;
  /** Prepared in the reader's thread. */
  lists(db: Database): Lists;
  calls(parts: Parts<NoInfer<Commands>, NoInfer<Lookups>, NoInfer<Lists>>): Calls;
}

/** The identity: what a noun declares is checked against itself, so that its calls see its own commands, look-ups and lists. */
export function noun<Commands, Lookups, Lists, Calls>(
  declared: Noun<Commands, Lookups, Lists, Calls>,
): Noun<Commands, Lookups, Lists, Calls> {
  return declared;
}

/** Of a noun that has none of a kind. */
export const none = (): object => ({});
