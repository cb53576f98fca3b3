// The SMTP relay: submission by mail programs with STARTTLS (587, 2525) and under TLS from the first byte
// (465, RFC 8314). This file composes it: listeners, session limits, certificates, time limits, start and stop.
// handlers.ts handles the commands; submission decides which mail is accepted.
// The ports are our own and hand each socket to smtp-server, whose own listener stays unused: so several
// ports share one set of sessions, and handshakes are limited before a session exists.
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server";
import type { Access } from "../access/access.ts";
import { createNetworks } from "../access/networks.ts";
import type { Maintenance } from "../maintenance/maintenance.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import { maxMessageBytes } from "../mail/intake.ts";
import type { Store } from "../store/store.ts";
import type { Submission } from "../submission/submission.ts";
import type { Certificates } from "../tls/certificates.ts";
import { createHandlers } from "./handlers.ts";
import { commonOptions, createListening, tlsOptions } from "./smtp-service.ts";
import type { Listening } from "./smtp-service.ts";
import { createPort } from "./port.ts";
import type { ProgressRule } from "./progress.ts";
import { createProxyProtocol } from "./proxy-protocol.ts";
import { createSessionLimiter, sharesBeforeLogin } from "./session-limiter.ts";
import { RelayServer } from "./smtp-connection.ts";
import type { SessionContext, RelayConnection } from "./smtp-connection.ts";
import { createImplicitTls } from "./implicit-tls.ts";

export interface RelayDeps {
  config: Pick<Config, "hostname" | "relay">;
  certificates: Certificates;
  access: Pick<Access, "authenticateSmtp" | "renewSmtp">;
  submission: Pick<Submission, "refuseRecipient" | "relay">;
  store: Pick<Store, "accountByName" | "full" | "listAccounts" | "spentQuota">;
  maintenance: Pick<Maintenance, "refusal">;
  clock: Clock;
  log: Log;
}

/** The progress limits of a peer that is not in a trusted network. */
const beforeLogin: ProgressRule = {
  ms: 60_000,
  replies: 100,
  tooLate: "4.7.0 No login within 60 seconds; connect again and log in",
  tooMany: "4.7.0 Too many commands without a login",
  crowded: "4.7.0 Too many sessions without a login; try again later",
};
/** A login takes a second or two; who has needed ten is not about to finish. */
const grace = { largest: 2_000, any: 10_000 };

export function createRelay(deps: RelayDeps): Listening {
  const { config, certificates, clock, log } = deps;
  const { maxConnections: total, maxConnectionsPerIp: perSource } = config.relay;
  const sessionLimiter = createSessionLimiter(
    { total, perSource, ...sharesBeforeLogin(total), grace },
    clock,
  );
  let emptied: (() => void) | null = null;
  const proxyProtocol = createProxyProtocol({
    proxies: createNetworks(config.relay.trustedProxies),
    clock,
    log,
  });
  const shared: SessionContext = {
    clock,
    peerOf: (socket) => proxyProtocol.peerOf(socket),
    // Who comes by a Unix socket is on this machine.
    trustedAccount: (socket) =>
      proxyProtocol.knowsClient(socket) ? trustedAccount(proxyProtocol.peerOf(socket) || "127.0.0.1") : null,
    acceptedAt: (socket) => implicitTls.acceptedAt(socket) ?? clock.monotonic(),
    sessions: sessionLimiter,
    progress: beforeLogin,
    stopping: false,
    closed: () => deps.maintenance.refusal() !== null,
    left: () => void (sessions().length === 0 && emptied?.()),
  };
  const trustedAccount = createTrustedAccounts(config.relay.trusted);

  const context = () => ({ ...certificates.current(), ...tlsOptions });
  const options = {
    ...context(),
    ...sessionOptions(config.hostname),
    ...createHandlers({
      ...deps,
      log,
      shared,
      shareOf: (account) => sessionLimiter.shareOf(account),
      connectionOf: (session) => connectionOf(session),
    }),
  };
  const plain = new RelayServer({ ...options }, shared);
  const implicit = new RelayServer({ ...options, secure: true, secured: true }, shared);
  const connectionOf = (session: SMTPServerSession): RelayConnection | undefined =>
    plain.sessions.get(session) ?? implicit.sessions.get(session);
  for (const server of [plain, implicit])
    server.on("error", (error: Error) => log.debug({ err: error }, "a connection failed"));
  const sessions = (): RelayConnection[] => [...plain.sessions.values(), ...implicit.sessions.values()];

  const implicitTls = createImplicitTls({
    context: context(),
    handshakes: createSessionLimiter(
      { total, perSource, unidentified: total, unidentifiedFirst: total, grace },
      clock,
    ),
    clock,
    peerOf: (socket) => proxyProtocol.peerOf(socket),
    log,
    secured: (socket) => void implicit.server.emit("connection", socket),
  });
  const ports = [
    ...config.relay.starttls.map((where) =>
      createPort("smtp", where, (socket) =>
        proxyProtocol.take(socket, (ready) => void plain.server.emit("connection", ready)),
      ),
    ),
    ...config.relay.implicitTls.map((where) =>
      createPort("smtps", where, (socket) => proxyProtocol.take(socket, (ready) => implicitTls.take(ready))),
    ),
  ];

  return createListening({
    name: "relay",
    ports,
    shared,
    clock,
    sessions,
    whenEmpty: (run) => (emptied = run),
    followCertificates: () =>
      certificates.onChange(() => {
        plain.updateSecureContext(context());
        implicitTls.renew(context());
      }),
    emptied: () => implicitTls.close(),
  });
}

/** The account whose mail an address may relay without a login (`relay.trusted`), or null. */
function createTrustedAccounts(trusted: Config["relay"]["trusted"]): (ip: string) => string | null {
  const rules = trusted.map(({ network, account }) => ({ networks: createNetworks([network]), account }));
  return (ip) => rules.find(({ networks }) => networks.has(ip))?.account ?? null;
}

function sessionOptions(hostname: string): SMTPServerOptions {
  return {
    ...commonOptions(hostname),
    size: maxMessageBytes,
    authMethods: ["PLAIN", "LOGIN"],
    disabledCommands: ["XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"],
    // The longest line is one of an AUTH exchange (RFC 4954 §4).
    maxCommandLength: 12_288,
  };
}
