// The calls that record an event and list events. Events are numbered in the order of commits.
import type { EventFilter, EventRecord, NewEvent } from "../../model/event.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface EventStore {
  recordEvent(event: NewEvent): Promise<void>;
  /** Accounts that have an event after this one, and the last event of all. */
  accountsWithEvents(afterSeq: number): Promise<{ accounts: number[]; lastSeq: number }>;
  listEvents(accountKey: number, filter: EventFilter, page: PageRequest): Promise<Page<EventRecord>>;
}
