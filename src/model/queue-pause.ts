// A pause of a part of the queue: its mail gets no attempt until a time, or until the operator ends it.

/** A recipient domain, a provider (or other group of MX hosts), a pool of an account, or an address that mail leaves from. */
export const pauseScopes = ["domain", "provider", "pool", "ip"] as const;
export type PauseScope = (typeof pauseScopes)[number];

/** A pool is an account's own; the other pauses are of every account's mail. */
export interface PauseOf {
  scope: PauseScope;
  /** null: every account's. */
  accountKey: number | null;
  /** In the form that it is compared in: lower case, a domain's A-label. */
  name: string;
}

export interface QueuePause extends PauseOf {
  since: number;
  /** null: until the operator ends it. */
  until: number | null;
}
