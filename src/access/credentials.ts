// SMTP logins: one name an account (and its `_test` twin), many passwords. The name finds the account,
// the password's hash finds the credential. An API key is not accepted as a password, nor a password as a key.
import { isId } from "../ids.ts";

export interface SmtpName {
  accountId: string;
  test: boolean;
}

/** `smtp_<account ulid>` or `smtp_<account ulid>_test`. */
export function smtpUsername(accountId: string, test: boolean): string {
  return `smtp_${accountId.replace(/^acct_/, "")}${test ? "_test" : ""}`;
}

/** The account that a name belongs to; null where it has not the form of one. */
export function readSmtpUsername(username: string): SmtpName | null {
  const match = /^smtp_([0-9a-z]{26})(_test)?$/.exec(username);
  if (!match) return null;
  const accountId = `acct_${match[1] ?? ""}`;
  return isId("acct", accountId) ? { accountId, test: match[2] !== undefined } : null;
}
