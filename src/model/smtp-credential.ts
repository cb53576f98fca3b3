// A login for SMTP submission (RFC 4954) as it is kept. Its password is shown once and never stored.

/** `revoked` is final. */
export const credentialStatuses = ["active", "revoked"] as const;
export type CredentialStatus = (typeof credentialStatuses)[number];

export interface SmtpCredential {
  key: number;
  id: string; // cred_…
  accountKey: number;
  name: string;
  test: boolean;
  hint: string;
  status: CredentialStatus;
  createdAt: number;
  lastUsedAt: number | null;
  revokedAt: number | null;
}

/** `hash`: SHA-256 of the password, 32 bytes. */
export type NewSmtpCredential = Omit<SmtpCredential, "key" | "lastUsedAt" | "revokedAt"> & {
  hash: Uint8Array;
};
