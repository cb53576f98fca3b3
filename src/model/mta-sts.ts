// The MTA-STS policy of a recipient domain (RFC 8461), as it was fetched and is kept.

/** `testing`: failures are reported and stop no mail; `none`: the domain has withdrawn its policy. */
export const mtaStsModes = ["enforce", "testing", "none"] as const;
export type MtaStsMode = (typeof mtaStsModes)[number];

export interface MtaStsPolicy {
  mode: MtaStsMode;
  /** Names of MX hosts, lower case; `*.` at the front stands for exactly one label. Empty under `none` alone. */
  mx: string[];
}

export interface KeptMtaStsPolicy extends MtaStsPolicy {
  /** Recipient domain, A-labels. */
  domain: string;
  /** Of the TXT record that announced it. */
  id: string;
  /** Unix milliseconds. */
  fetchedAt: number;
  /** `fetchedAt` and the policy's `max_age`. */
  expiresAt: number;
}
