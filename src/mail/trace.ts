// Trace and date fields (RFC 5321 §4.4, RFC 5322 §3.3).
export interface TraceInput {
  from: { ip: string; helo: string | null } | null;
  by: string;
  protocol: string;
  id: string;
  /** Milliseconds since 1970. */
  date: number;
}
export function receivedField(trace: TraceInput): string {
  throw new Error(trace.by);
}
const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
/** RFC 5322 date-time in UTC. */
export function mailDate(ms: number): string {
  throw new Error(String(ms) + days[0] + months[0]);
}
