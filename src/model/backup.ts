// Backups: what is in one, and how far one is. A backup is a directory, `svc-<time>Z/`, with backup.json in it.

/** all: every message's content; unsent: only of messages that are still to be sent. */
export const backupContents = ["all", "unsent"] as const;
export type BackupContent = (typeof backupContents)[number];

export interface FileSum {
  /** Within the backup. */
  path: string;
  bytes: number;
  /** In hexadecimal. */
  sha256: string;
}

/** What the store has copied. */
export interface StoreCopy {
  schema: number;
  database: FileSum;
  counts: BackupCounts;
}

export interface BackupCounts {
  messages: number;
  /** Recipients that are scheduled, queued, deferred, being sent or held. */
  unsentRecipients: number;
  /** Files of content beside the database, and their bytes. */
  files: number;
  fileBytes: number;
  /** Files that a message names and that were not there, or not whole. */
  filesMissing: number;
}

export interface CopyRequest {
  /** An empty directory, of the owner alone. */
  directory: string;
  content: BackupContent;
  /** How much of it is done, 0 to 1. */
  onProgress(share: number): void;
  /** Ends it; it rejects. */
  signal: AbortSignal;
}

export interface RestoreRequest {
  /** The directory of the backup. */
  from: string;
  dataDir: string;
  now: number;
  /** When the backup was made. */
  createdAt: number;
  /** What the backup says of the files of content. */
  counts: Pick<BackupCounts, "files" | "filesMissing">;
  /** Distinguishes the names of directories that are made. */
  stamp: string;
  /** Folders of the data directory beside the store's own that the backup has. */
  others: readonly string[];
}

export interface Restored {
  schema: number;
  /** Where the data that stood there is now; null: there was none. */
  aside: string | null;
  /** Recipients that are held for the operator, by account. */
  held: HeldOf[];
  filesMissing: number;
}

export interface HeldOf {
  account: string;
  recipients: number;
}
