// TLS by name: what may be asked for at listeners and of receiving servers, and what an attempt's session came to.

/** Where the listeners' certificate comes from. */
export const listenerTlsModes = ["acme", "files", "self-signed", "off"] as const;
export type ListenerTlsMode = (typeof listenerTlsModes)[number];

/** Where a certificate that is served comes from; `installed`: by `svc cert install`. */
export const certificateSources = ["acme", "files", "installed", "self-signed"] as const;
export type CertificateSource = (typeof certificateSources)[number];

/** What is asked of receiving servers (RFC 3207, RFC 7435). */
export const outboundTlsModes = ["opportunistic", "require", "verify"] as const;
export type OutboundTls = (typeof outboundTlsModes)[number];

/** What is asked of a smart host, which may also be spoken to in clear. */
export const smartHostTlsModes = ["none", ...outboundTlsModes] as const;
export type SmartHostTls = (typeof smartHostTlsModes)[number];

/** What required TLS of an attempt; `mta-sts` is RFC 8461, `dane` RFC 7672. */
export const tlsPolicies = ["none", "require", "verify", "mta-sts", "dane"] as const;
export type TlsPolicy = (typeof tlsPolicies)[number];

/** The TLS session of an attempt, and what required it. */
export interface TlsSummary {
  /** null where a policy required TLS, and the attempt ended before it was up. */
  version: string | null;
  /** null as `version`. */
  cipher: string | null;
  /** The certificate is valid for the MX host (or matched a TLSA record). */
  verified: boolean;
  policy: TlsPolicy;
}
