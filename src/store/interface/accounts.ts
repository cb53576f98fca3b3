// The calls about accounts: made, listed, changed, deleted.
import type { Account, AccountChange } from "../../model/account.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface AccountStore {
  accountByName(name: string): Promise<Account | null>;
  accountByKey(key: number): Promise<Account | null>;
  accountById(id: string): Promise<Account | null>;
  /** null: there is an account of this name. */
  createAccount(account: Pick<Account, "id" | "name" | "createdAt">): Promise<Account | null>;
  /** In the order in which they were made, without those that were deleted. */
  listAccounts(page: PageRequest): Promise<Page<Account>>;
  /** The account as it is then; null: no such account, or it was deleted. */
  changeAccount(id: string, change: AccountChange): Promise<Account | null>;
  /** Whether any mail of the account is still to be sent. */
  hasUnsent(accountKey: number): Promise<boolean>;
  /**
   * A suspended account, for good: keys and logins are revoked; domains, webhooks and suppressions go; its name is
   * free. Messages and events stay for their retention. False: there is none that is suspended.
   */
  deleteAccount(id: string, at: number): Promise<boolean>;
}
