// The numbers in which an order is kept: messages in the order of their acceptance, with the answers to idempotent requests
// among them, recipients in the order of their message, events in the order of their commit. Retention and cursors rely on
// that order, so the store gives these numbers itself and leaves none of them to the engine. A number is never given twice,
// though its row is gone; one of a call that was undone is left out.
import type { Database, Statement } from "better-sqlite3";

export const sequenceNames = ["messages", "recipients", "events"] as const;
export type SequenceName = (typeof sequenceNames)[number];

export interface Sequences {
  /** Higher than every number of this sequence before. */
  next(name: SequenceName): number;
  /** Writes how far the sequences have come: at the end of each transaction, before its COMMIT. */
  flush(): void;
}

/** To be created on each connection that writes; there is one at a time. */
export function createSequences(db: Database): Sequences {
  const kept: Statement<[string], { last: number }> = db.prepare("SELECT last FROM sequences WHERE name = ?");
  const keep = db.prepare("INSERT OR REPLACE INTO sequences (name, last) VALUES (?, ?)");
  const last = new Map<SequenceName, number>();
  const moved = new Set<SequenceName>();
  return {
    next(name) {
      const number = (last.get(name) ?? kept.get(name)?.last ?? 0) + 1;
      last.set(name, number);
      moved.add(name);
      return number;
    },
    flush() {
      for (const name of moved) keep.run(name, last.get(name));
      moved.clear();
    },
  };
}
