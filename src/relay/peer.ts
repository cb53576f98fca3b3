// Who a session says it is, made safe for a Received field (RFC 5321 §4.4) and for the lock-out.
import type { Socket } from "node:net";
import type { SMTPServerSession } from "smtp-server";
import type { Arrival } from "../submission/submission.ts";

/** Domain of labels (an underscore is seen in the wild), or an address literal. */
const domain = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?$/i;
const literal = /^\[(?:ipv6:)?[0-9a-f.:]{2,45}\]$/i;

/** The peer's address; who comes by a Unix socket is on this machine. */
export function peerOf(session: Pick<SMTPServerSession, "remoteAddress">): string {
  return session.remoteAddress || "127.0.0.1";
}

/** Names a TCP connection by its ends, which its TLS socket has too. Those of a Unix socket have none. */
export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress ?? ""} ${remotePort ?? 0} ${localAddress ?? ""} ${localPort ?? 0}`;
}

/** The name that EHLO gave; null for what no host could be called: it must not reach a header. */
export function heloName(text: string | false): string | null {
  return text !== false && (domain.test(text) || literal.test(text)) ? text : null;
}

/** The `with` keyword: RFC 3848, and RFC 6531 §4.3 where the mail needs SMTPUTF8. */
export function protocolOf(
  session: Pick<SMTPServerSession, "openingCommand" | "secure" | "user">,
  smtpUtf8: boolean,
): string {
  const suffix = (session.secure ? "S" : "") + (session.user ? "A" : "");
  if (smtpUtf8) return `UTF8SMTP${suffix}`;
  return suffix === "" && session.openingCommand === "HELO" ? "SMTP" : `ESMTP${suffix}`;
}

export function arrivalOf(session: SMTPServerSession, smtpUtf8: boolean): Arrival {
  return {
    ip: peerOf(session),
    helo: heloName(session.hostNameAppearsAs),
    protocol: protocolOf(session, smtpUtf8),
  };
}
