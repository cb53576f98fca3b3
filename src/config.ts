// Every option of svc.yaml, resolved: units in the names, defaults filled in.
export type ListenAddress = { host: string; port: number } | { path: string };
export type OutboundTls = "opportunistic" | "require" | "verify";
export type LogLevelName = "debug" | "info" | "warn" | "error";

export interface SmartHost {
  host: string;
  port: number;
  user: string | null;
  password: string | null;
  tls: "none" | "opportunistic" | "require" | "verify";
}

export interface OutboundConfig {
  port: number;
  /** Addresses to send from; empty: the system's choice. */
  source: string[];
  /** CIDR networks that may be dialled although they are loopback, private or link-local. */
  allowNetworks: string[];
  retryMs: number[];
  maxAgeMs: number;
  tls: OutboundTls;
  timeouts: { connectMs: number; greetingMs: number; commandMs: number; dataMs: number; dotMs: number };
  shapingFile: string | null;
  sign: boolean;
  smartHost: SmartHost | null;
}

export interface Config {
  hostname: string;
  /** Base address without a trailing slash, e.g. `https://mail.acme.example`. */
  publicUrl: string;
  dataDir: string;
  socket: string;
  tls: { mode: "files" | "self-signed" | "off"; certFile: string | null; keyFile: string | null };
  http: { listen: ListenAddress[]; trustedProxies: string[] };
  relay: {
    starttls: ListenAddress[];
    implicitTls: ListenAddress[];
    maxConnections: number;
    maxConnectionsPerIp: number;
    trusted: { network: string; account: string }[];
  };
  outbound: OutboundConfig;
  dns: { servers: string[]; timeoutMs: number; tries: number };
  webhooks: { allowNetworks: string[]; caFile: string | null; scheduleMs: number[]; timeoutMs: number };
  limits: { maxQueue: number; minFreeShare: number; rates: Record<string, { burst: number; perSecond: number }> };
  operations: { email: string | null; from: string | null };
  log: { level: LogLevelName };
  /** `serve --dev`: nothing leaves the machine, every mail is caught in the local inbox. */
  dev: boolean;
}
