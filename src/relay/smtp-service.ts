// What submission and the inbound port share: listening on all their ports or on none, the time limits of sessions, new
// certificates, the end of all sessions at a shutdown, and the options of smtp-server that apply to both.
import { constants } from "node:crypto";
import type { SMTPServerOptions } from "smtp-server";
import type { Clock, Timer } from "../clock.ts";
import type { Service } from "../service.ts";
import { dismissAll } from "./shutdown.ts";
import type { Port } from "./port.ts";
import type { SessionContext, RelayConnection } from "./smtp-connection.ts";

/** Renegotiation costs the server more than the client; TLS 1.3 has none. */
export const tlsOptions = {
  minVersion: "TLSv1.2",
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** How often the time limits of the sessions are checked. */
const sweepMs = 5_000;

/** Of one mail: RFC 5321 §4.5.3.1.8 asks for at least this many. */
export const mostRecipients = 100;

export function commonOptions(hostname: string): SMTPServerOptions {
  return {
    name: hostname,
    heloResponse: "%s",
    // MAIL decides who may send (the handlers), because some need no login.
    authOptional: true,
    hideENHANCEDSTATUSCODES: false,
    hideDSN: true,
    hideREQUIRETLS: true,
    maxRecipients: mostRecipients,
    // Silence, to smtp-server; that whole commands come in time is smtp-connection.ts.
    socketTimeout: 300_000,
    disableReverseLookup: true,
    logger: false,
  };
}

/** `addresses`: what it listens on, with the real ports; only while started. */
export type Listening = Service & { addresses(): { name: string; address: string }[] };

export interface ListeningParts {
  name: string;
  ports: Port[];
  shared: SessionContext;
  clock: Clock;
  sessions(): RelayConnection[];
  /** Hands over the caller of the last session's end. */
  whenEmpty(run: () => void): void;
  /** Begins to follow the certificate; the answer ends that. */
  followCertificates(): (() => void) | null;
  /** Called after all sessions have ended, to release the remaining resources. */
  emptied?(): void;
}

export function createListening(parts: ListeningParts): Listening {
  const { name, ports, shared, clock, sessions } = parts;
  let timer: Timer | null = null;
  let forget: (() => void) | null = null;
  const sweep = (): void => {
    for (const session of sessions()) session.expire();
    timer = clock.after(sweepMs, sweep);
  };
  return {
    name,
    async start() {
      try {
        for (const port of ports) await port.open();
      } catch (error) {
        for (const port of ports) void port.close();
        throw error;
      }
      forget = parts.followCertificates();
      timer = clock.after(sweepMs, sweep);
    },
    async stop() {
      shared.stopping = true;
      timer?.cancel();
      forget?.();
      const closed = ports.map((port) => port.close());
      await dismissAll(clock, sessions, parts.whenEmpty);
      parts.emptied?.();
      await Promise.all(closed);
    },
    addresses: () => ports.map((port) => ({ name: port.name, address: port.address() })),
  };
}
