// Retention: what is to be removed for its age, and what was. How long each is kept: the options `retention.*`.

/** What is to be kept: everything after these moments, and nothing that is still to be sent, however old. */
export interface PurgeRequest {
  now: number;
  /** Content, and what else shows it (dialogues, inbox copies), of messages whose last recipient was final by then. */
  contentBefore: number;
  /** Messages whose last recipient was final by then, with what is left of them. */
  messagesBefore: number;
  /** Events received by then that no delivery waits for and that were not dead-lettered since, with their deliveries. */
  eventsBefore: number;
  /** Rows of the audit log from before then. */
  auditBefore: number;
  /** About how many rows, and pages of content, one call removes: other writes wait for as long. */
  limit: number;
  /** Return all free space of the store to the file system, also what stood empty for a moment only. */
  returnAll?: true;
}

export type ExpiredRequest = Omit<PurgeRequest, "now" | "limit" | "returnAll">;

/** Rows that are old enough to be removed; those among them stay that are still to be sent or posted. */
export interface ExpiredRows {
  rows: number;
  /** There are more: no more than that are counted. */
  more: boolean;
}

export type Expired = Record<"content" | "messages" | "events" | "audit", ExpiredRows>;

/** What is removed, and how much where it is nothing. */
export const nothingPurged = {
  content: 0,
  messages: 0,
  events: 0,
  deliveries: 0,
  /** Answers to idempotent requests that are too old to be replayed. */
  idempotency: 0,
  audit: 0,
  /** Rows of the statistics. */
  stats: 0,
  /** Large content, each kept under a name of its own, and its bytes. */
  files: 0,
  fileBytes: 0,
  /** Bytes of the database's file that were returned to the file system. */
  returnedBytes: 0,
};

export type PurgedCounts = typeof nothingPurged;

export interface Purged extends PurgedCounts {
  /** There is more to remove, or space to give back: call again. */
  more: boolean;
}
