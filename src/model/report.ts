// A report that came back by mail, a bounce or a complaint: the recipient that it is about, and what it changes. How
// one is read, and whose it is: feedback/.
import type { NewEvent } from "./event.ts";
import type { Job } from "./queued-recipient.ts";
import type { RecipientState } from "./recipient.ts";
import type { NewSuppression } from "./suppression.ts";

/** A recipient of a message that went out, as a report that comes back is judged against it. */
export interface SentRecipient {
  /** `attempt`: the last one; no lease. */
  job: Job;
  state: RecipientState;
  receivingMta: string | null;
  sendingIp: string | null;
  /** The group of MX hosts of its last attempt. */
  provider: string | null;
}

/** What a report that came back changes for one recipient. */
export interface Report {
  kind: "bounced" | "complained";
  recipientKey: number;
  messageKey: number;
  at: number;
  /** Of a bounce; a complaint leaves the recipient's reply as it is. */
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  event: NewEvent;
  suppression: NewSuppression | null;
}

/** `already`: reported before, or there is no recipient that it could concern. `busy`: an attempt is under way, ask again later. */
export type ReportResult = "recorded" | "already" | "busy";
