// The calls about API keys and SMTP credentials. Both are found by the hash of what the client shows, and end for
// good: a revoked one is never active again.
import type { ApiKey, ApiKeyChange, KeyStatus, NewApiKey } from "../../model/api-key.ts";
import type { Page, PageRequest } from "../../model/page.ts";
import type { NewSmtpCredential, SmtpCredential } from "../../model/smtp-credential.ts";

export interface CredentialStore {
  createApiKey(key: NewApiKey): Promise<ApiKey>;
  apiKeyByHash(hash: Uint8Array): Promise<ApiKey | null>;
  apiKey(accountKey: number, id: string): Promise<ApiKey | null>;
  /** In the order in which they were made. */
  listApiKeys(accountKey: number, page: PageRequest): Promise<Page<ApiKey>>;
  changeApiKey(accountKey: number, id: string, change: ApiKeyChange): Promise<ApiKey | null>;
  /** Revoked is final: answers the key as it is now, null where there is none. */
  setApiKeyStatus(accountKey: number, id: string, status: KeyStatus, at: number): Promise<ApiKey | null>;
  createSmtpCredential(credential: NewSmtpCredential): Promise<SmtpCredential>;
  smtpCredentialByHash(accountKey: number, test: boolean, hash: Uint8Array): Promise<SmtpCredential | null>;
  listSmtpCredentials(accountKey: number): Promise<SmtpCredential[]>;
  /** A credential in place of an active one, which is revoked: the new one; the old one where it was revoked before; null: there is none. */
  rotateSmtpCredential(
    accountKey: number,
    id: string,
    fresh: Pick<NewSmtpCredential, "id" | "hash" | "hint">,
    at: number,
  ): Promise<SmtpCredential | null>;
  revokeSmtpCredential(accountKey: number, id: string, at: number): Promise<SmtpCredential | null>;
  /** Notes uses, coarsely: callers send a key at most once a minute. */
  noteUse(use: { apiKeys: number[]; smtpCredentials: number[]; at: number }): Promise<void>;
}
