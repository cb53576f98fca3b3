// The calls about SMTP credentials. One is found by the hash of its password, and ends for good: a revoked one is never
// active again.
import type { NewSmtpCredential, SmtpCredential } from "../../model/smtp-credential.ts";

export interface SmtpCredentialStore {
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
}
