// What recipients do with their mail, and how it is written: opens, clicks, unsubscribes.
import type { NewEvent } from "./event.ts";
import type { SentRecipient } from "./report.ts";
import type { NewSuppression } from "./suppression.ts";

/** What machines have done with a message, as a sum: `recipients.machine_visits`. */
export const machineVisit = { opened: 1, clicked: 2 } as const;
export type VisitKind = keyof typeof machineVisit;

export const unsubscribeMethods = ["one_click", "link", "mailto"] as const;
export type UnsubscribeMethod = (typeof unsubscribeMethods)[number];

/** A recipient of a message that went out, and what it did before. */
export interface ReactingRecipient extends SentRecipient {
  openedAt: number | null;
  clickedAt: number | null;
  unsubscribedAt: number | null;
  machineVisits: number;
}

/** An open or a click, to be written. One by a machine has its event, and neither time nor count at the recipient. */
export interface NewVisit {
  accountKey: number;
  kind: VisitKind;
  machine: boolean;
  recipientKey: number;
  messageKey: number;
  at: number;
  event: NewEvent;
}

/** An unsubscribe, to be written. */
export interface NewUnsubscribe {
  accountKey: number;
  at: number;
  /** Null: the message is gone. Of one that is still there, the first unsubscribe is recorded. */
  recipient: { recipientKey: number; messageKey: number; event: NewEvent } | null;
  /** Null for mail of a test key. It names the event once that is recorded. */
  suppression: NewSuppression | null;
}
