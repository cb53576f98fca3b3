// The questions that this program asks the DNS, and the four answers that matter: found, no such
// data, no such name, and "could not tell", which is never taken for one of the others (RFC 5321 §5.1).

export type DnsAnswer<T> =
  | {
      kind: "found";
      records: T[];
      ttlSeconds: number;
      /** AD bit of the configured resolver. */ authenticated: boolean;
    }
  | { kind: "nodata" }
  | { kind: "nxdomain" }
  | { kind: "failed"; why: string };

export interface MxRecord {
  preference: number;
  /** Lower case, without the final dot; empty for a null MX (RFC 7505). */
  exchange: string;
}

export interface Resolver {
  mx(name: string): Promise<DnsAnswer<MxRecord>>;
  a(name: string): Promise<DnsAnswer<string>>;
  aaaa(name: string): Promise<DnsAnswer<string>>;
  /** Each record's strings joined. */
  txt(name: string): Promise<DnsAnswer<string>>;
  cname(name: string): Promise<DnsAnswer<string>>;
  ptr(address: string): Promise<DnsAnswer<string>>;
  stop(): void;
}
