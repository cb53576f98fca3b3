// Where the bytes of a message are: in the database, or in a file of `spool/`.

/** A plain value: it crosses threads and processes. */
export type ContentRef =
  { kind: "inline"; id: number; sizeBytes: number } | { kind: "spool"; name: string; sizeBytes: number };

/** Content that is ready to be named by a message: bytes for the same commit, or a synced spool file. */
export type PutContent =
  { kind: "inline"; bytes: Uint8Array } | { kind: "spool"; name: string; sizeBytes: number };

/** Open for a thread of this process to read by itself: the bytes, or the descriptor of a file that nobody changes. */
export type OpenedContent = { kind: "bytes"; bytes: Uint8Array } | { kind: "file"; fd: number };
