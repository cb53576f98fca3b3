// An API key as it is kept. Its value is shown once and never stored: a key is found by its hash.
import type { Limits, LimitsChange } from "./limits.ts";

/** What a key may do; `admin` may do everything. */
export const keyScopes = ["send", "suppressions", "reporting", "admin"] as const;
export type Scope = (typeof keyScopes)[number];

/** `revoked` is final. */
export const keyStatuses = ["active", "disabled", "revoked"] as const;
export type KeyStatus = (typeof keyStatuses)[number];

export interface ApiKey extends Limits {
  key: number;
  id: string; // key_…
  accountKey: number;
  name: string;
  test: boolean;
  scope: Scope;
  /** The last four characters, to tell keys apart. */
  hint: string;
  /** CIDR networks; empty: any address. */
  allowIps: string[];
  status: KeyStatus;
  createdAt: number;
  expiresAt: number | null;
  lastUsedAt: number | null;
  revokedAt: number | null;
}

/** `hash`: SHA-256 of the whole key, 32 bytes; a key is found by it, and it is never read back. */
export type NewApiKey = Omit<ApiKey, "key" | "lastUsedAt" | "revokedAt"> & { hash: Uint8Array };
export type ApiKeyChange = Partial<Pick<ApiKey, "name" | "allowIps">> & LimitsChange;
