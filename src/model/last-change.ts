// When a list of the API last changed (RFC 9110 §8.8.2, Last-Modified). Which write changes which stands where the store declares it.

/** What can change apart from the rest: the lists of the API. */
export const resources = [
  "messages",
  "events", // with their deliveries
  "suppressions",
  "webhooks",
  "domains",
  "ip_pools", // with their addresses
  "keys",
  "smtp_credentials",
  "inbox",
  "accounts",
  "stats", // beside messages and events, which are counted
] as const;
export type Resource = (typeof resources)[number];

/**
 * When what was asked for last changed: `at`, a whole second that no answer before the change could name. A row's own
 * time may stand for it where the row changes at nothing else, not before `late` and counted from the end of the second
 * after it: rows are written before they are seen.
 */
export interface LastChange {
  at: number;
  late: number;
}
