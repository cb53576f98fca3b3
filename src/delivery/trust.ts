// The certificate authorities that vouch for mail hosts and for the servers of MTA-STS policies: the system's, with
// NODE_EXTRA_CA_CERTS. Reading them takes milliseconds, so it is done once, when they are first needed.
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";

/** `trusted`: PEM certificates to trust in place of all these. */
export function createTrust(trusted?: string[]): () => SecureContext {
  let context: SecureContext | null = null;
  return () => (context ??= createSecureContext({ ca: trusted ?? trustStore() }));
}

/** The system's roots and NODE_EXTRA_CA_CERTS; Node's own where the system has none. */
function trustStore(): string[] {
  const system = getCACertificates("system");
  return [
    ...new Set([
      ...(system.length > 0 ? system : getCACertificates("bundled")),
      ...getCACertificates("extra"),
    ]),
  ];
}
