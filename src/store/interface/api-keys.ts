// The calls about API keys. A key is found by the hash of what the client shows, and ends for good: a revoked one is never
// active again.
import type { ApiKey, ApiKeyChange, KeyStatus, NewApiKey } from "../../model/api-key.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface ApiKeyStore {
  createApiKey(key: NewApiKey): Promise<ApiKey>;
  apiKeyByHash(hash: Uint8Array): Promise<ApiKey | null>;
  apiKey(accountKey: number, id: string): Promise<ApiKey | null>;
  /** In the order in which they were made. */
  listApiKeys(accountKey: number, page: PageRequest): Promise<Page<ApiKey>>;
  changeApiKey(accountKey: number, id: string, change: ApiKeyChange): Promise<ApiKey | null>;
  /** Revoked is final: answers the key as it is now, null where there is none. */
  setApiKeyStatus(accountKey: number, id: string, status: KeyStatus, at: number): Promise<ApiKey | null>;
  /** Notes uses of keys and of SMTP credentials, coarsely: callers send a key at most once a minute. */
  noteUse(use: { apiKeys: number[]; smtpCredentials: number[]; at: number }): Promise<void>;
}
