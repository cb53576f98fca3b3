// Where the bytes of a message are: `inline`, in a row that is written with the message's, or `spool`, kept before it under
// a name of their own.

/** A plain value: it crosses threads and processes. */
export type ContentRef =
  { kind: "inline"; id: number; sizeBytes: number } | { kind: "spool"; name: string; sizeBytes: number };

/** Content that is ready to be named by a message: bytes for the same commit, or the name of what is on disk. */
export type PutContent =
  { kind: "inline"; bytes: Uint8Array } | { kind: "spool"; name: string; sizeBytes: number };

/** Open for a thread of this process to read by itself: the bytes, or, where they are a file, its descriptor. */
export type OpenedContent = { kind: "bytes"; bytes: Uint8Array } | { kind: "file"; fd: number };
