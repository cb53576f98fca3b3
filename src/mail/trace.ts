// Trace and date fields: Received (RFC 5321 §4.4) and the date-time of RFC 5322 §3.3. Every
// value that a peer named is checked here, because a Received field is built of what clients say.

export interface TraceInput {
  /** The client; null where the message was made on this machine. */
  from: { ip: string; helo: string | null } | null;
  /** Our own host name. */
  by: string;
  /** `ESMTPSA`, `HTTP`, … (RFC 3848). */
  protocol: string;
  /** `msg_…` */
  id: string;
  /** Milliseconds since 1970-01-01 UTC. */
  date: number;
}

const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
/** Domain or address literal; what else a client says in EHLO is left out, never quoted. */
const hostLike = /^(?:[A-Za-z0-9_.-]{1,253}|\[[A-Za-z0-9.:]{1,60}\])$/;
const token = /^[A-Za-z0-9_.-]{1,253}$/;

/** One Received field, folded, with its final CRLF. */
export function receivedField(trace: TraceInput): string {
  for (const own of [trace.by, trace.protocol, trace.id]) {
    if (!token.test(own)) throw new Error(`no token for a Received field: ${JSON.stringify(own)}`);
  }
  const by = `by ${trace.by} with ${trace.protocol} id ${trace.id};`;
  const lines = trace.from === null ? [by] : [fromClause(trace.from), by];
  return `Received: ${lines.join("\r\n\t")}\r\n\t${mailDate(trace.date)}\r\n`;
}

function fromClause(from: { ip: string; helo: string | null }): string {
  const ip = /^[0-9A-Fa-f.:]{2,45}$/.test(from.ip) ? from.ip : "0.0.0.0";
  const literal = ip.includes(":") ? `[IPv6:${ip}]` : `[${ip}]`;
  const helo = from.helo !== null && hostLike.test(from.helo) ? from.helo : null;
  return helo === null ? `from ${literal}` : `from ${helo} (${literal})`;
}

const pad = (n: number): string => (n < 10 ? `0${n}` : String(n));

/** RFC 5322 date-time in UTC, e.g. `Fri, 27 Nov 2026 09:15:22 +0000`. */
export function mailDate(ms: number): string {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) throw new Error("no time for a Date field");
  const day = `${days[d.getUTCDay()]}, ${d.getUTCDate()} ${months[d.getUTCMonth()]} ${d.getUTCFullYear()}`;
  return `${day} ${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())} +0000`;
}
