// The DNS queries of this program, and their four answers: found, no such data, no such name (NXDOMAIN), and a failed
// look-up, which is never treated as one of the others (RFC 5321 §5.1).
import type { Owner } from "../fairness.ts";
import type { TlsaRecord } from "./tlsa.ts";

export type DnsAnswer<T> =
  | {
      kind: "found";
      records: T[];
      ttlSeconds: number;
      /** AD bit of the configured resolver. */ authenticated: boolean;
      /** The name that has the records, where the one asked for is an alias (CNAME) of it. */
      canonical?: string;
    }
  | { kind: "nodata" }
  | { kind: "nxdomain" }
  | { kind: "failed"; why: string };

/** MX records of one answer that are used: no legitimate domain needs more, and answers are kept. */
export const maxMxRecords = 32;

export interface MxRecord {
  preference: number;
  /** Lower case, without the final dot; empty for a null MX (RFC 7505). */
  exchange: string;
}

/** `owner`: in whose share of the look-ups a question goes; questions without one share one. */
export interface Resolver {
  /** Those of lowest preference. */
  mx(name: string, owner?: Owner): Promise<DnsAnswer<MxRecord>>;
  a(name: string, owner?: Owner): Promise<DnsAnswer<string>>;
  aaaa(name: string, owner?: Owner): Promise<DnsAnswer<string>>;
  /** Each record's strings joined. */
  txt(name: string, owner?: Owner): Promise<DnsAnswer<string>>;
  cname(name: string, owner?: Owner): Promise<DnsAnswer<string>>;
  ptr(address: string, owner?: Owner): Promise<DnsAnswer<string>>;
  tlsa(name: string, owner?: Owner): Promise<DnsAnswer<TlsaRecord>>;
  stop(): void;
}
