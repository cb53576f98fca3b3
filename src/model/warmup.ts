// Warm-up of an address: what it has sent within a day, by provider, counted while it lasts.

/** One message that an address which warms up sent to a provider. */
export interface WarmupSend {
  address: string;
  /** A large provider's group of MX hosts, or `default`: all the others together. */
  provider: string;
  /** Days since 1970-01-01 UTC. */
  day: number;
}

/** What an address has sent to a provider on a day. */
export interface WarmupCount extends WarmupSend {
  sent: number;
}
