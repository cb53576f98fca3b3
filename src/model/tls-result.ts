// What the TLS of one session came to, as TLS reports count it (RFC 8460 §4).

export const tlsPolicyTypes = ["tlsa", "sts", "no-policy-found"] as const;
export type TlsPolicyType = (typeof tlsPolicyTypes)[number];

/** RFC 8460 §4.3: of sessions, and of policies that could not be fetched. */
export const tlsFailureTypes = [
  "starttls-not-supported",
  "certificate-host-mismatch",
  "certificate-expired",
  "certificate-not-trusted",
  "validation-failure",
  "tlsa-invalid",
  "dnssec-invalid",
  "sts-policy-fetch-error",
  "sts-policy-invalid",
  "sts-webpki-invalid",
] as const;
export type TlsFailureType = (typeof tlsFailureTypes)[number];

/** The policy that a session was held against. */
export interface ReportedPolicy {
  type: TlsPolicyType;
  /** Its lines, or the TLSA records. */
  strings: string[];
  /** Whose policy it is: the recipient domain, or the TLSA base domain (RFC 8460 §1.1). */
  domain: string;
  /** Patterns of MTA-STS, or the host. */
  mxHosts: string[];
}

export interface TlsFailure {
  type: TlsFailureType;
  sendingIp: string | null;
  /** null: no host was chosen yet. */
  mxHost: string | null;
  receivingIp: string | null;
}

export interface TlsResult {
  /** Recipient domain, A-labels. */
  domain: string;
  policy: ReportedPolicy;
  failure: TlsFailure | null;
  /** In words; empty without a failure. */
  reason: string;
}

/** Equal results of a UTC day. */
export interface TlsResultCount extends TlsResult {
  /** Days since 1970-01-01. */
  day: number;
  sessions: number;
}
