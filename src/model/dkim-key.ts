// A DKIM key of a sender domain (RFC 6376, RFC 8463). Its life, from published to retired: domains/keys.ts.

export const dkimAlgorithms = ["rsa-sha256", "ed25519-sha256"] as const;
export type DkimAlgorithm = (typeof dkimAlgorithms)[number];

/** `pending`: published, and signs once it is seen in the DNS. `retired`: signs no more, and is published a while longer. */
export const dkimKeyStatuses = ["active", "pending", "retired"] as const;
export type DkimKeyStatus = (typeof dkimKeyStatuses)[number];

export interface DkimKey {
  selector: string;
  algorithm: DkimAlgorithm;
  /** PKCS#8 PEM. */
  privatePem: string;
  /** The `p=` value of the DNS record, base64. */
  publicKey: string;
  status: DkimKeyStatus;
  /** When it was retired; absent where it is not. */
  retiredAt?: number;
}
