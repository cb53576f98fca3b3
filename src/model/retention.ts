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
}

export interface Purged {
  content: number;
  messages: number;
  events: number;
  deliveries: number;
  /** Answers to idempotent requests that are too old to be replayed. */
  idempotency: number;
  /** Rows of the statistics. */
  stats: number;
  audit: number;
  /** Spool files. */
  files: number;
  /** There is more to remove, or space to return to the file system: call again. */
  more: boolean;
}
