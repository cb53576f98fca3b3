// The SMTP relay: submission by mail programs with STARTTLS (587, 2525) and under TLS from the first byte
// (465, RFC 8314). This file composes it: listeners, session limits, certificates, time limits, start and stop.
// handlers.ts handles the commands; submission decides which mail is accepted.
// The ports are our own and hand each socket to smtp-server (servers.ts), so that handshakes are limited before a session
// exists.
import type { Socket } from "node:net";
import type { SMTPServerOptions } from "smtp-server";
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
import { createPort, type Port } from "./port.ts";
import type { ProgressRule } from "./progress.ts";
import { createProxyProtocol, type ProxyProtocol } from "./proxy-protocol.ts";
import { createServers, type Servers } from "./servers.ts";
import { createSessionLimiter, sharesBeforeLogin } from "./session-limiter.ts";
import type { SessionContext } from "./smtp-connection.ts";
import { createImplicitTls, type ImplicitTls } from "./implicit-tls.ts";

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
  const sessionLimits = { total, perSource, ...sharesBeforeLogin(total), grace };
  const handshakeLimits = { total, perSource, unidentified: total, unidentifiedFirst: total, grace };
  const sessionLimiter = createSessionLimiter(sessionLimits, clock);
  const proxies = createNetworks(config.relay.trustedProxies);
  const proxyProtocol = createProxyProtocol({ proxies, clock, log });
  let emptied: (() => void) | null = null;
  const shared: SessionContext = {
    clock,
    peerOf: (socket) => proxyProtocol.peerOf(socket),
    trustedAccount: createTrustedAccounts(config.relay.trusted, proxyProtocol),
    acceptedAt: (socket) => implicitTls.acceptedAt(socket) ?? clock.monotonic(),
    sessions: sessionLimiter,
    progress: beforeLogin,
    stopping: false,
    closed: () => deps.maintenance.refusal() !== null,
    left: () => void (servers.sessions().length === 0 && emptied?.()),
  };
  const context = () => ({ ...certificates.current(), ...tlsOptions });
  const handlers = createHandlers({
    ...deps,
    log,
    shared,
    shareOf: (account) => sessionLimiter.shareOf(account),
    connectionOf: (session) => servers.connectionOf(session),
  });
  const options = { ...context(), ...sessionOptions(config.hostname), ...handlers };
  const servers = createServers(options, shared, log);
  const implicitTls = createImplicitTls({
    context: context(),
    handshakes: createSessionLimiter(handshakeLimits, clock),
    clock,
    peerOf: (socket) => proxyProtocol.peerOf(socket),
    log,
    secured: servers.beginSecured,
  });

  return createListening({
    name: "relay",
    ports: createPorts(config.relay, proxyProtocol, servers, implicitTls),
    shared,
    clock,
    sessions: servers.sessions,
    whenEmpty: (run) => (emptied = run),
    followCertificates: () =>
      certificates.onChange(() => {
        servers.renew(context());
        implicitTls.renew(context());
      }),
    emptied: () => implicitTls.close(),
  });
}

/** What comes by a port goes through the PROXY protocol first, and by one of implicit TLS through a handshake. */
function createPorts(
  { starttls, implicitTls }: Pick<Config["relay"], "starttls" | "implicitTls">,
  proxyProtocol: ProxyProtocol,
  servers: Servers,
  handshakes: ImplicitTls,
): Port[] {
  return [
    ...starttls.map((where) =>
      createPort("smtp", where, (socket) => proxyProtocol.take(socket, servers.begin)),
    ),
    ...implicitTls.map((where) =>
      createPort("smtps", where, (socket) => proxyProtocol.take(socket, handshakes.take)),
    ),
  ];
}

/** The account whose mail a peer may relay without a login (`relay.trusted`), or null. */
function createTrustedAccounts(
  trusted: Config["relay"]["trusted"],
  proxyProtocol: ProxyProtocol,
): (socket: Socket) => string | null {
  const rules = trusted.map(({ network, account }) => ({ networks: createNetworks([network]), account }));
  return (socket) => {
    if (!proxyProtocol.knowsClient(socket)) return null;
    const ip = proxyProtocol.peerOf(socket) || "127.0.0.1"; // who comes by a Unix socket is on this machine
    return rules.find(({ networks }) => networks.has(ip))?.account ?? null;
  };
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
