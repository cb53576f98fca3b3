// Every option of svc.yaml: its path, type, default and meaning. The default is written as an
// operator would write it and is read by the same type. The name of its environment variable is its path in
// capitals: `outbound.max_age` is SVC_OUTBOUND_MAX_AGE.
import { join } from "node:path";
import { z } from "zod";
import { feedbackLoopDomains } from "../mail/feedback-loops.ts";
import { defaultAccount } from "../model/account.ts";
import { listingActions } from "../model/listing.ts";
import { logFormats, logLevels } from "../model/log-level.ts";
import { listenerTlsModes, outboundTlsModes, smartHostTlsModes } from "../model/tls.ts";
import { orList } from "../word-list.ts";
import type { Places } from "./places.ts";
import * as kind from "./values.ts";

/** What defaults depend on. */
export interface DefaultContext {
  places: Places;
  /** The machine's own name, as the system gives it. */
  machineName: string;
  dev: boolean;
}

/** What is said of an option beside its type. */
export interface OptionNote {
  /** As an operator would write it; null: not set. */
  standard: unknown;
  about: string;
}

/** Notes by type: each option has an instance of its own. */
export const optionNotes = z.registry<OptionNote>();

type Standard = string | number | boolean | unknown[] | object | ((around: DefaultContext) => unknown);

function option<T, Unit extends string>(
  type: kind.Kind<T, Unit>,
  standard: Standard,
  about: string,
): z.ZodOptional<z.ZodType<T>> & { unit: Unit } {
  const { unit } = type;
  return Object.assign(type.optional().register(optionNotes, { standard, about }), { unit });
}
function optional<T, Unit extends string>(
  type: kind.Kind<T, Unit>,
  about: string,
): z.ZodOptional<z.ZodNullable<z.ZodType<T>>> & { unit: Unit } {
  const { unit } = type;
  return Object.assign(type.nullable().optional().register(optionNotes, { standard: null, about }), { unit });
}

/** System service, plain user, `serve --dev`. */
const ports = (system: number[], user: number[]) => (around: DefaultContext) =>
  around.dev
    ? user.map((port) => `127.0.0.1:${port}`)
    : (around.places.system ? system : user).map((port) => `[::]:${port}`);
const listeners = kind.list(kind.listenAddress, { max: 32 });
const networks = kind.list(kind.network, { max: 1000 });

export const options = {
  hostname: option(
    kind.hostName,
    ({ dev, machineName }: DefaultContext) => (dev ? "mail.example.test" : machineName),
    "EHLO name, domain of Message-IDs and host of return paths",
  ),
  public_url: optional(
    kind.baseUrl,
    "address of the API as clients see it; else https://<hostname> and the port of http.listen",
  ),
  data_dir: option(
    kind.path,
    ({ places }: DefaultContext) => places.dataDir,
    "database, spool, keys and certificates",
  ),
  "tls.mode": optional(
    kind.tlsMode,
    `${orList(listenerTlsModes)}; files where tls.cert is given, else self-signed`,
  ),
  "tls.cert": optional(kind.path, "certificate chain, PEM"),
  "tls.key": optional(kind.path, "its private key, PEM"),
  "tls.tracking_certificates": optional(
    kind.path,
    "folder with the certificates of tracking names: <name>.crt, the chain, and <name>.key, PEM; a name without one gets one from the ACME server, or one that is self-signed",
  ),
  "tls.acme.email": optional(
    kind.mailAddress,
    "contact that the certificate authority gets with tls.mode: acme; else operations.email",
  ),
  "tls.acme.directory": option(
    kind.httpsUrl,
    "https://acme-v02.api.letsencrypt.org/directory",
    "ACME server that issues the certificates",
  ),
  "tls.acme.eab_key_id": optional(
    kind.user,
    "id of the external account binding's key, where the ACME server wants one",
  ),
  "tls.acme.eab_mac_key_file": optional(
    kind.path,
    "file with that key, base64url as the ACME server gives it",
  ),
  "tls.acme.http_listen": option(
    kind.list(kind.listenAddress, { min: 1, max: 32 }),
    ports([80], [8080]),
    "where the ACME server's checks are answered (HTTP-01), which come to port 80; other requests are redirected to https",
  ),
  "http.listen": option(
    kind.list(kind.listenAddress, { min: 1, max: 32 }),
    ports([443], [8443]),
    "where the API listens",
  ),
  "http.trusted_proxies": option(networks, [], "proxies whose X-Forwarded-For and X-Forwarded-Proto count"),
  "relay.starttls": option(listeners, ports([587, 2525], [8587, 8525]), "SMTP with STARTTLS"),
  "relay.implicit_tls": option(listeners, ports([465], [8465]), "SMTP with TLS from the first byte"),
  "relay.max_connections": option(kind.whole(1, 100_000), 1000, "SMTP sessions at a time"),
  "relay.max_connections_per_ip": option(
    kind.whole(1, 100_000),
    50,
    "SMTP sessions at a time from one address",
  ),
  "relay.trusted": option(
    kind.trustedPeers,
    [],
    `networks that may send without a login: [{network: 10.0.0.0/8, account: ${defaultAccount}}]`,
  ),
  "relay.trusted_proxies": option(
    networks,
    [],
    "proxies whose connections begin with a PROXY header (version 1 or 2)",
  ),
  "inbound.listen": option(
    listeners,
    ports([25], []),
    "where bounces and complaints arrive; none by default for a plain user",
  ),
  "feedback.loops": option(
    kind.list(kind.hostName, { max: 1000 }),
    [...feedbackLoopDomains],
    "domains of feedback loops, by DKIM or confirmed reverse name, whose complaints suppress and count without a return path in them",
  ),
  "outbound.port": option(kind.whole(1, 65_535), 25, "port of receiving servers"),
  "outbound.source": option(
    kind.list(kind.ipAddress, { max: 256 }),
    [],
    "addresses to send from; none: the system's choice",
  ),
  "outbound.allow_networks": option(
    networks,
    [],
    "loopback and private networks that may be dialled as receiving servers",
  ),
  "outbound.retry": option(
    kind.list(kind.span("1s", "24h"), { min: 1, max: 50 }),
    ["1m", "5m", "15m", "30m", "1h", "2h", "4h"],
    "waits between attempts; the last one repeats",
  ),
  "outbound.max_age": option(kind.span("1m", "30d"), "48h", "how long a message is tried"),
  "outbound.tls": option(kind.oneOf(...outboundTlsModes), "opportunistic", orList(outboundTlsModes)),
  "outbound.timeouts.connect": option(kind.span("1s", "10m"), "30s", "wait for a connection"),
  "outbound.timeouts.greeting": option(kind.span("1s", "10m"), "60s", "wait for the greeting"),
  "outbound.timeouts.command": option(kind.span("1s", "10m"), "60s", "wait for a reply to a command"),
  "outbound.timeouts.data": option(kind.span("1s", "30m"), "180s", "wait while data is sent"),
  "outbound.timeouts.dot": option(kind.span("1s", "1h"), "600s", "wait for the reply to the final dot"),
  "outbound.shaping_file": optional(kind.path, "rules for receiving servers, beside the built-in ones"),
  "outbound.sign": option(kind.truth, true, "DKIM; false only with a smart host, which then signs"),
  "outbound.smart_host.host": optional(kind.host, "send everything through this server"),
  "outbound.smart_host.port": option(kind.whole(1, 65_535), 587, "its port"),
  "outbound.smart_host.user": optional(kind.user, "login there"),
  "outbound.smart_host.password_file": optional(kind.path, "file with the password"),
  "outbound.smart_host.tls": option(
    kind.oneOf(...smartHostTlsModes),
    "verify",
    `${orList(smartHostTlsModes)}; a password needs verify`,
  ),
  "outbound.smart_host.allow_unverified_password": option(
    kind.truth,
    false,
    "send the password under TLS whose certificate is not verified (tls: require or opportunistic); never in clear text",
  ),
  "dns.servers": option(kind.list(kind.dnsServer, { max: 16 }), [], "resolvers; none: the system's"),
  "dns.timeout": option(kind.span("100ms", "1m"), "5s", "wait for one answer"),
  "dns.tries": option(kind.whole(1, 10), 2, "queries before giving up"),
  "webhooks.allow_networks": option(
    networks,
    ({ dev }: DefaultContext) => (dev ? ["127.0.0.0/8", "::1/128"] : []),
    "loopback and private networks where endpoints may be",
  ),
  "webhooks.ca_file": optional(kind.path, "more certificate authorities for endpoints, PEM"),
  "webhooks.schedule": option(
    kind.list(kind.span("1s", "24h"), { min: 1, max: 50 }),
    ["30s", "2m", "10m", "30m", "1h", "2h", "4h", "8h", "8h"],
    "waits between attempts; after the last the event is dead-lettered",
  ),
  "webhooks.timeout": option(kind.span("1s", "1m"), "10s", "wait for an endpoint's answer"),
  "dnsbl.interval": option(
    kind.span("1s", "7d"),
    "1h",
    "how often each sending address is looked up at each blocklist; a job looks each minute",
  ),
  "dnsbl.zones": option(
    kind.zones,
    [],
    "blocklists to ask: names or {zone, name, codes, removal_url}; none: the built-in ones",
  ),
  "dnsbl.on_listing": option(
    kind.oneOf(...listingActions),
    "none",
    "drain: no new mail leaves from a listed address while another of its pool can be used",
  ),
  "limits.max_queue": option(kind.whole(1, 1_000_000_000), 5_000_000, "recipients that wait at a time"),
  "limits.min_free_space": option(
    kind.percent,
    "5%",
    "share of the disk below which new mail is refused; 0% switches that off",
  ),
  "limits.rates": option(kind.rates, {}, "rates of buckets: {messages-write: {burst: 200, per_second: 200}}"),
  "retention.content": option(
    kind.span("0s", "3650d"),
    "3d",
    "how long content stays after the last recipient is final; 0: it is deleted then",
  ),
  "retention.messages": option(
    kind.span("1d", "3650d"),
    "90d",
    "how long messages and their attempts stay after that",
  ),
  "retention.events": option(
    kind.span("1d", "3650d"),
    "30d",
    "how long events stay after they were received, or dead-lettered",
  ),
  "retention.audit": option(kind.span("1d", "3650d"), "90d", "how long the audit log is kept"),
  "backup.at": optional(
    kind.timeOfDay,
    "when a backup is made each day, UTC, such as 03:30; none unless it is set",
  ),
  "backup.keep": option(kind.whole(1, 1000), 7, "how many of these are kept; backups made by hand stay"),
  "backup.to": optional(
    kind.path,
    "where backups are made; else /var/backups/svc, and <data_dir>/backups of a plain user",
  ),
  guard: option(
    kind.guard,
    { hard_bounce: "10%", complaint: "0.3%" },
    "shares of hard bounces and complaints within a day past which an account's sending is paused; false: never",
  ),
  "operations.email": optional(
    kind.mailAddress,
    "who gets mail about dead letters, failing domains, paused accounts, unusable addresses, blocklists and certificates",
  ),
  "operations.from": optional(
    kind.mailAddress,
    "sender of these mails and of TLS reports; else postmaster@<hostname>",
  ),
  "metrics.listen": option(
    listeners,
    [],
    "where Prometheus reads GET /metrics, over plain HTTP and without a key: 127.0.0.1:9090, or a path for a Unix socket",
  ),
  "log.level": option(
    kind.oneOf(...logLevels),
    ({ dev }: DefaultContext) => (dev ? "warn" : "info"),
    orList(logLevels),
  ),
  "log.format": option(
    kind.oneOf(...logFormats),
    "auto",
    "JSON lines or, pretty, words for a person; auto: pretty on a terminal",
  ),
};

export type OptionPath = keyof typeof options;
export type OptionValues = { [P in OptionPath]: Exclude<z.output<(typeof options)[P]>, undefined> };
export const optionPaths = Object.keys(options) as OptionPath[];

/** Every option judged; what is left out stays out. */
export const someOptions = z.object(options);
export const allOptions = someOptions.required();

/** Written as one structure in an environment variable, in YAML's flow form. */
export const structured: ReadonlySet<OptionPath> = new Set<OptionPath>([
  "relay.trusted",
  "limits.rates",
  "guard",
  "dnsbl.zones",
]);

/** Keys of coming versions: a file with one is refused, so that no operator relies on what does not work yet. */
export const notYet: readonly string[] = ["tracking"];

export function environmentName(path: string): string {
  return `SVC_${path.replaceAll(".", "_").toUpperCase()}`;
}

/** The admin socket where neither a flag nor SVC_SOCKET names one. */
export function standardSocket(places: Places, dataDir: string): string {
  return places.socket ?? join(dataDir, "admin.sock");
}
