// The calls for what comes back by mail: whose message a report is about, and what it changes.
import type { Report, ReportResult, SentRecipient } from "../../model/report.ts";

export interface ReportStore {
  /** The recipients of a message, by its key or its id, in any account; null: no such message. */
  sentMessage(of: { key: number } | { id: string }): Promise<SentRecipient[] | null>;
  /** What a returned mail reports, in one transaction. A recipient bounces and complains once: later reports write nothing. */
  settleReports(reports: Report[]): Promise<ReportResult[]>;
}
