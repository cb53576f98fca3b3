// Maintenance: a time in which clients are refused, while the queue goes on.

/** Since when clients are refused, and until when; null: until the operator ends it. */
export interface MaintenanceWindow {
  since: number;
  until: number | null;
}
