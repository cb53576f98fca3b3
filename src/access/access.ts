// Who may do what, as whom: the door through which HTTP and SMTP ask.
import type { Account, ApiKey, KeyStatus, Scope, SmtpCredential } from "../store/store.ts";

export type Principal =
  | { kind: "key"; account: Account; key: ApiKey }
  /** A person at the admin socket: every scope, no bucket, no lock-out. */
  | { kind: "operator"; account: Account; name: string };

export interface SmtpLogin {
  account: Account;
  test: boolean;
  credentialKey: number;
}

export interface Access {
  /** Throws Refusal: source_ip_locked, invalid_api_key, key_disabled, ip_not_allowed, in that order. */
  authenticateKey(authorization: string | undefined, ip: string): Promise<Extract<Principal, { kind: "key" }>>;
  /** Throws Refusal: source_ip_locked, invalid_api_key (535), key_disabled (suspended account). */
  authenticateSmtp(username: string, password: string, ip: string): Promise<SmtpLogin>;
  createKey(accountKey: number, wanted: { name: string; scope: Scope; test: boolean; allowIps: string[]; expiresAt: number | null }): Promise<{ key: ApiKey; value: string }>;
  setKeyStatus(accountKey: number, id: string, status: KeyStatus): Promise<ApiKey>;
  createCredential(account: Account, wanted: { name: string; test: boolean }): Promise<{ credential: SmtpCredential; username: string; password: string }>;
  /** Makes a new password under the same name and revokes the old one. */
  rotateCredential(account: Account, id: string): Promise<{ credential: SmtpCredential; username: string; password: string }>;
}
