// The calls of TLS results: counted by UTC day and recipient domain, until they were reported.
import type { TlsResultCount } from "../../model/tls-result.ts";

/** What one report is about. */
export interface TlsResultDay {
  /** Days since 1970-01-01 UTC. */
  day: number;
  /** Recipient domain. */
  domain: string;
}

export interface TlsResultStore {
  /** Adds to what stands; of a domain and day at most `most` different results are kept. */
  addTlsResults(counts: TlsResultCount[], most: number): Promise<void>;
  /** Days before `before` that have results, in order, after `after`. */
  tlsResultDays(before: number, after: TlsResultDay | null, limit: number): Promise<TlsResultDay[]>;
  tlsResults(of: TlsResultDay): Promise<TlsResultCount[]>;
  removeTlsResults(days: TlsResultDay[]): Promise<void>;
}
