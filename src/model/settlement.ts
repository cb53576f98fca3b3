// What an attempt, or a refusal to attempt, changes: recipient, attempt, event, suppression and inbox copy, written in
// one transaction. How an outcome comes to it: queue/settle.ts.
import type { AttemptRecord, SettledOutcome } from "./attempt.ts";
import type { NewEvent } from "./event.ts";
import type { NewSuppression, NxdomainRecheck } from "./suppression.ts";
import type { WarmupSend } from "./warmup.ts";

export interface Settlement {
  /** Recipient key of the job. */
  recipientKey: number;
  messageKey: number;
  accountKey: number;
  owner: string;
  outcome: SettledOutcome;
  /** For deferred: when the next attempt is due. */
  nextAttemptAt: number | null;
  at: number;
  attempt: number;
  /** null where no attempt was made (a suppressed recipient, an expiry without a try). */
  record: AttemptRecord | null;
  /** The group of MX hosts that was tried; null where none was. */
  provider: string | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  event: NewEvent;
  suppression: NewSuppression | null;
  nxdomainRecheck: NxdomainRecheck | null;
  /** Put a copy into the local inbox (test keys, --dev). */
  catchInInbox: boolean;
  /** Counted at an address that warms up; null: it does not, or no server was reached. */
  warmup: WarmupSend | null;
}
