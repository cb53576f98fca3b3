// The calls about the store itself, whatever engine it stands on: its health, its commits, its secrets, its end.
import type { LastChange, Resource } from "../../model/last-change.ts";

/** What a commit brought; listeners are called right after it, on the loop. */
export interface Commit {
  events: boolean;
  /** Some of its events are to be posted to endpoints. */
  deliveries: boolean;
  /** What it counted, test mail left out, a sum for each counter in their order (model/counters.ts); null: nothing. */
  counted: readonly number[] | null;
}

/** Facts of the store, as they are now. */
export interface Health {
  schemaVersion: number;
  /** Of the room that the store has. */
  freeBytes: number;
  /** False since the last write was refused. */
  writable: boolean;
  full: boolean;
  /** What the engine says of itself, in its own words, for the operator: it is shown as it is. */
  engine: Readonly<Record<string, string | number>>;
}

export interface EngineStore {
  /** A secret of this installation, made at first use: 32 random bytes (`verp`, …). */
  secret(name: string): Promise<Uint8Array>;
  health(): Promise<Health>;
  /** When anything of these kinds, of the account or of all of them, last changed; to be asked before it is read. */
  lastChange(accountKey: number, of: readonly Resource[]): Promise<LastChange>;
  /** New mail is to be refused: free space is under the low-water mark, or the last write failed for want of room. */
  full(): Promise<boolean>;
  /** Resolves when the writer has ended what it was at; where it hangs, neither resolves nor rejects. Writes nothing. */
  writerAnswers(): Promise<void>;
  onCommit(listener: (commit: Commit) => void): () => void;
  close(): Promise<void>;
}
