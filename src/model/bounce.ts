// What an event says of a bounce or a complaint, in the words of the API. How a reply or a report comes to them:
// mail/failure.ts, mail/arf.ts. The causes of a bounce: model/classification.ts.

/** hard: a permanent failure. soft: temporary failures until the message expired. undetermined: the report does not say. */
export const bounceTypes = ["hard", "soft", "undetermined"] as const;
export type BounceType = (typeof bounceTypes)[number];

/** The receiving server's reply; a report that came back (RFC 3464); or our own finding, without a reply. */
export const bounceSources = ["smtp", "dsn", "local"] as const;
export type BounceSource = (typeof bounceSources)[number];
/** Of an attempt, which no report can come of. */
export type OutcomeSource = Exclude<BounceSource, "dsn">;

/** The feedback types of RFC 5965, and `other`. */
export const complaintTypes = ["abuse", "fraud", "virus", "opt_out", "other"] as const;
export type ComplaintType = (typeof complaintTypes)[number];
