// The calls of the local inbox.
import type { InboxMail } from "../../model/inbox.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface InboxStore {
  listInbox(accountKey: number, page: PageRequest): Promise<Page<InboxMail>>;
  clearInbox(accountKey: number): Promise<number>;
}
