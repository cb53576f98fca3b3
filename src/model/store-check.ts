// What a check of the store found.

export interface StoreCheck {
  /** What is wrong with the database, in the engine's words; a hundred at most. */
  faults: string[];
  /** Rows that name another one that is not there. */
  danglingRows: number;
  /** Files of content: those that messages name, of these those that are missing or not whole, and those that no message names. */
  files: { named: number; missing: number; cutShort: number; unnamed: number };
  databaseBytes: number;
  /** Of what is written and not yet in the database's file. */
  logBytes: number;
}

/** Nothing is lost: files without a message take space alone. */
export function isSound({ faults, danglingRows, files }: StoreCheck): boolean {
  return faults.length === 0 && danglingRows === 0 && files.missing === 0 && files.cutShort === 0;
}

export interface CheckRequest {
  /** An empty directory, of the owner alone, with room for the database. */
  directory: string;
  onProgress(share: number): void;
  /** Ends it; it rejects. */
  signal: AbortSignal;
}
