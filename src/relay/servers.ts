// The two servers of submission, with the same options: sessions that become TLS by STARTTLS, and sessions under TLS from
// the first byte. smtp-server's own listeners stay unused: each socket is handed to a server, so that several ports share one
// set of sessions.
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server";
import type { Log } from "../log.ts";
import { RelayServer } from "./smtp-connection.ts";
import type { RelayConnection, SessionContext } from "./smtp-connection.ts";

export interface Servers {
  /** Begins a session on a connection in clear. */
  begin(socket: Socket): void;
  /** Begins a session on a connection whose TLS handshake has ended. */
  beginSecured(socket: Socket): void;
  /** Those of both, also the ones that are being closed. */
  sessions(): RelayConnection[];
  connectionOf(session: SMTPServerSession): RelayConnection | undefined;
  /** Another certificate, for STARTTLS from now on. */
  renew(context: SecureContextOptions): void;
}

export function createServers(options: SMTPServerOptions, shared: SessionContext, log: Log): Servers {
  const plain = new RelayServer({ ...options }, shared);
  const implicit = new RelayServer({ ...options, secure: true, secured: true }, shared);
  for (const server of [plain, implicit])
    server.on("error", (error: Error) => log.debug({ err: error }, "a connection failed"));
  return {
    begin: (socket) => void plain.server.emit("connection", socket),
    beginSecured: (socket) => void implicit.server.emit("connection", socket),
    sessions: () => [...plain.sessions.values(), ...implicit.sessions.values()],
    connectionOf: (session) => plain.sessions.get(session) ?? implicit.sessions.get(session),
    renew: (context) => plain.updateSecureContext(context),
  };
}
