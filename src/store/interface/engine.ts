// The calls about the store itself, whatever engine it stands on: its health, its commits, its secrets, its end.
import type { LastChange, Resource } from "../../model/last-change.ts";

/** What a commit brought; listeners are called right after it, on the loop. */
export interface Commit {
  events: boolean;
}

export interface EngineStore {
  /** A secret of this installation, made at first use: 32 random bytes (`verp`, …). */
  secret(name: string): Promise<Uint8Array>;
  /** Pragmas as read back, file sizes, rows waiting: for status and tests. */
  health(): Promise<{
    journalMode: string;
    synchronous: number;
    schemaVersion: number;
    freeBytes: number;
    walBytes: number;
    writable: boolean;
  }>;
  /** When anything of these kinds, of the account or of all of them, last changed; to be asked before it is read. */
  lastChange(accountKey: number, of: readonly Resource[]): Promise<LastChange>;
  /** True while free space is under the low-water mark or the last write failed for want of room. */
  full(): boolean;
  onCommit(listener: (commit: Commit) => void): () => void;
  close(): Promise<void>;
}
