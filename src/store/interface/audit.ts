// The calls of the audit log. The row of an act is written with the act (Store.answered); these are for the rest.
import type { AuditEntry, AuditFilter, AuditRecord } from "../../model/audit.ts";
import type { Page, PageRequest } from "../../model/page.ts";

export interface AuditStore {
  recordAudit(entries: AuditEntry[]): Promise<void>;
  /** Newest first. */
  listAudit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditRecord>>;
}
