// The numbers that mean something: messages in the order of their acceptance, with the answers to idempotent requests among
// them, recipients in the order of their message, events in the order of their commit, rows of the audit log, and endpoints,
// whose deliveries may outlive them. Retention, cursors and deletions rely on it, so the store gives these numbers itself and
// leaves none of them to the engine. A number is never given twice, though its row is gone; one of a call that was undone is
// left out, and one of a dry run is given again.
import type { Database, Statement } from "better-sqlite3";

export const sequenceNames = ["messages", "recipients", "events", "audit", "endpoints"] as const;
export type SequenceName = (typeof sequenceNames)[number];

/** How far the sequences had come. */
export interface SequenceMark {
  last: ReadonlyMap<SequenceName, number>;
  moved: ReadonlySet<SequenceName>;
}

export interface Sequences {
  /** Higher than every number of this sequence before. */
  next(name: SequenceName): number;
  mark(): SequenceMark;
  /** The numbers since were not kept and nobody has them: they are given again. */
  undo(to: SequenceMark): void;
  /** Writes how far the sequences have come: at the end of each transaction, before its COMMIT. */
  flush(): void;
}

/** To be created on each connection that writes; there is one at a time. */
export function createSequences(db: Database): Sequences {
  const kept: Statement<[string], { last: number }> = db.prepare("SELECT last FROM sequences WHERE name = ?");
  const keep = db.prepare("INSERT OR REPLACE INTO sequences (name, last) VALUES (?, ?)");
  let last = new Map<SequenceName, number>();
  let moved = new Set<SequenceName>();
  return {
    next(name) {
      const number = (last.get(name) ?? kept.get(name)?.last ?? 0) + 1;
      last.set(name, number);
      moved.add(name);
      return number;
    },
    mark: () => ({ last: new Map(last), moved: new Set(moved) }),
    undo(to) {
      last = new Map(to.last);
      moved = new Set(to.moved);
    },
    flush() {
      for (const name of moved) keep.run(name, last.get(name));
      moved.clear();
    },
  };
}
