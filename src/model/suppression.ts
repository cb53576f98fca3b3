// The suppression list of an account: addresses that it does not send to, and why. What puts a recipient on it:
// suppressions/policy.ts.

export const suppressionReasons = ["hard_bounce", "complaint", "unsubscribe", "manual"] as const;
export type SuppressionReason = (typeof suppressionReasons)[number];

/** A stronger reason replaces a weaker one. */
export const reasonStrength: Readonly<Record<SuppressionReason, number>> = {
  manual: 1,
  unsubscribe: 2,
  hard_bounce: 3,
  complaint: 4,
};

export const suppressionSources = ["system", "api", "cli", "import", "recipient", "smtp"] as const;
export type SuppressionSource = (typeof suppressionSources)[number];

export interface NewSuppression {
  accountKey: number;
  canonical: string;
  /** First spelling, for display. */
  email: string;
  reason: SuppressionReason;
  source: SuppressionSource;
  description: string | null;
  messageId: string | null;
  eventId: string | null;
  smtpCode: string | null;
  smtpStatus: string | null;
  expiresAt: number | null;
}

export interface Suppression extends NewSuppression {
  createdAt: number;
  updatedAt: number;
}

export interface SuppressionFilter {
  reason?: SuppressionReason;
  source?: string;
  domain?: string;
  emailPrefix?: string;
  createdAfter?: number;
  createdBefore?: number;
}

/** How many there are in a piece of the list. */
export interface SuppressionCount {
  byReason: Partial<Record<SuppressionReason, number>>;
  /** Where the next piece begins; null: that was the last. */
  next: string | null;
}

/** An address whose domain did not exist: it is suppressed when a later look agrees. */
export interface NxdomainRecheck {
  domain: string;
  /** A name that the DNS has shown before. */
  knownName: string;
  /** The bounce. */
  since: number;
  dueAt: number;
  /** The suppression that it comes to; it names the bounce. */
  entry: NewSuppression;
}
