// Every option of svc.yaml, resolved: units in the names, defaults filled in; and the
// loader that makes it of flags, environment and files, in that order of precedence. The options themselves
// are in config/options.ts; here is the only place that reads files and the environment for them.
// Every fault is reported at once; a configuration with a fault is none. Over 300 lines because the type and
// what fills it in are one list, seen twice.
import { hostname as systemName } from "node:os";
import { parse as parseYaml } from "yaml";
import { crossChecks } from "./config/checks.ts";
import { fileLayers, readTextFile, type ReadFile } from "./config/files.ts";
import {
  environmentLayer,
  flagLayer,
  passwordVariable,
  shown,
  type ConfigFault,
  type Given,
  type Layer,
} from "./config/layers.ts";
import {
  allOptions,
  optionNotes,
  options,
  optionPaths,
  someOptions,
  standardSocket,
  type OptionPath,
  type OptionValues,
  type Surroundings,
} from "./config/options.ts";
import { placesOf, type Environment, type Places } from "./config/places.ts";
import { secret, socketPath, type ListenAddress } from "./config/values.ts";
import type { LogLevel } from "./model/log-level.ts";
import type { ListenerTlsMode, OutboundTls, SmartHostTls } from "./model/tls.ts";

export type { ConfigFault, ListenAddress };

export interface SmartHost {
  host: string;
  port: number;
  user: string | null;
  password: string | null;
  tls: SmartHostTls;
  /** The password may go to a server whose certificate is not verified; in clear text it never goes. */
  allowUnverifiedPassword: boolean;
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
  tls: { mode: ListenerTlsMode; certFile: string | null; keyFile: string | null };
  http: { listen: ListenAddress[]; trustedProxies: string[] };
  relay: {
    starttls: ListenAddress[];
    implicitTls: ListenAddress[];
    maxConnections: number;
    maxConnectionsPerIp: number;
    trusted: { network: string; account: string }[];
    trustedProxies: string[];
  };
  /** Where reports about our mail come in; no address: they do not. */
  inbound: { listen: ListenAddress[] };
  /** Domains of the feedback loops whose complaints count, in A-label form and lower case. */
  feedback: { loops: string[] };
  outbound: OutboundConfig;
  dns: { servers: string[]; timeoutMs: number; tries: number };
  webhooks: { allowNetworks: string[]; caFile: string | null; scheduleMs: number[]; timeoutMs: number };
  limits: {
    maxQueue: number;
    minFreeShare: number;
    rates: Record<string, { burst: number; perSecond: number }>;
  };
  /** Counted from the last recipient's end; events from their receipt or dead letter. `contentMs` may be 0. */
  retention: { contentMs: number; messagesMs: number; eventsMs: number; auditMs: number };
  /** Shares past which an account's sending is paused; null: none is. */
  guard: { hardBounceShare: number; complaintShare: number } | null;
  operations: { email: string | null; from: string | null };
  log: { level: LogLevel };
  /** `serve --dev`: nothing leaves the machine, every mail is caught in the local inbox. */
  dev: boolean;
}

export interface ConfigRequest {
  /** Command line: options by path (lists with commas), and `config`, the one file to read in place of the others. */
  flags: Partial<Record<OptionPath, string>> & { config?: string; socket?: string };
  env: Environment;
  home: string;
  uid: number;
  /** Text of a file, null where there is none. */
  readFile?: ReadFile;
  /** Names in a directory, none where there is no such directory. */
  listDir?: (path: string) => string[];
  /** The machine's own name; the host name where none is configured. */
  machineName?: string;
}

export type ConfigResult = { config: Config; files: string[] } | { faults: ConfigFault[] };

/** The configuration that `serve` runs with. */
export function loadConfig(request: ConfigRequest): ConfigResult {
  const places = placesOf(request);
  return resolve(request, {
    places,
    ...fileLayers({ ...request, only: request.flags.config ?? request.env["SVC_CONFIG"] }, places),
    dev: false,
  });
}

/** What `serve --dev` runs with: loopback ports above 1024, no file read. Environment variables hold here too. */
export function devConfig(request: ConfigRequest): ConfigResult {
  return resolve(request, { places: placesOf(request), layers: [], files: [], faults: [], dev: true });
}

/** What outbound.shaping_file holds; its form is judged where it is used (queue/shaping.ts). Throws where it is no YAML. */
export function readShapingFile(path: string): unknown {
  return parseYaml(readTextFile(path) ?? "");
}

/** One line a fault: where, what was found, what would be right. */
export function faultText({ source, line, path, found, expected }: ConfigFault): string {
  const where = line === null ? source : `${source}:${line}`;
  const right = expected.startsWith("did you mean") ? `; ${expected}` : `, expected ${expected}`;
  return `${where}: ${path === "" ? "" : `${path}: `}found ${found}${right}`;
}

interface Sources {
  places: Places;
  /** By falling precedence. */
  layers: Layer[];
  files: string[];
  faults: ConfigFault[];
  dev: boolean;
}

function resolve(request: ConfigRequest, sources: Sources): ConfigResult {
  const layers = [flagLayer(request.flags), environmentLayer(request.env), ...sources.layers];
  const faults = [...sources.faults, ...layers.flatMap((layer) => layer.faults)];
  // What a file as a whole could not tell is not missing: only what was really given is judged then.
  const unread = faults.some(({ path }) => path === "");
  const given = (path: OptionPath): Given | undefined =>
    layers.find((layer) => layer.given.has(path))?.given.get(path);
  const machineName = request.machineName ?? systemName();
  const around: Surroundings = { places: sources.places, machineName, dev: sources.dev };
  const wrong = (path: OptionPath, part: PropertyKey[], found: string, expected: string): void => {
    const at = given(path);
    const standing = sources.files.at(-1) ?? sources.places.userConfig ?? sources.places.systemConfig;
    faults.push({
      source: at?.source ?? standing,
      line: at?.line(part) ?? null,
      path: pathText(at?.name ?? path, part),
      found,
      expected,
    });
  };

  const raw: Record<string, unknown> = {};
  for (const path of optionPaths) raw[path] = given(path)?.raw ?? standardOf(path, around);
  const judged = allOptions.safeParse(raw);
  const readable = { ...raw };
  for (const issue of judged.error?.issues ?? []) {
    const [path, ...part] = issue.path as [OptionPath, ...PropertyKey[]];
    delete readable[path];
    if (unread && given(path) === undefined) continue;
    const whole =
      given(path) === undefined ? `nothing (and this machine calls itself ${shown(raw[path])})` : null;
    const unknown = issue.code === "unrecognized_keys" ? `the unknown key ${issue.keys.join(", ")}` : null;
    wrong(path, part, whole ?? unknown ?? shown(partOf(raw[path], part)), issue.message);
  }
  const readFile = request.readFile ?? readTextFile;
  const read = someOptions.parse(readable);
  const login = passwordOf(request.env, read["outbound.smart_host.password_file"] ?? null, readFile);
  if (login === undefined)
    wrong("outbound.smart_host.password_file", [], "more than one line of text", "a password of one line");
  const isGiven = (path: OptionPath): boolean => given(path) !== undefined;
  const surely = { dev: sources.dev, readFile, passwordGiven: login !== null, isGiven };
  for (const one of unread ? [] : crossChecks(read, surely)) wrong(one.path, [], one.found, one.expected);
  const socket = socketPath.safeParse(
    request.flags.socket ?? request.env["SVC_SOCKET"] ?? standardSocket(sources.places, read.data_dir ?? "/"),
  );
  if (!socket.success) {
    const source = request.flags.socket !== undefined ? "command line" : "environment";
    faults.push({
      source,
      line: null,
      path: "socket",
      found: shown(request.flags.socket ?? request.env["SVC_SOCKET"]),
      expected: socket.error.issues[0]?.message ?? "",
    });
  }
  if (faults.length > 0 || !judged.success || !socket.success || login === undefined) {
    return {
      faults: faults.toSorted((a, b) => a.source.localeCompare(b.source) || (a.line ?? 0) - (b.line ?? 0)),
    };
  }
  return {
    config: assemble(judged.data, { socket: socket.data, password: login, dev: sources.dev }),
    files: sources.files,
  };
}

function standardOf(path: OptionPath, around: Surroundings): unknown {
  const standard = optionNotes.get(options[path])?.standard ?? null;
  return typeof standard === "function" ? (standard(around) as unknown) : standard;
}

function pathText(name: string, part: readonly PropertyKey[]): string {
  return part.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${String(key)}`),
    name,
  );
}

function partOf(value: unknown, part: readonly PropertyKey[]): unknown {
  return part.reduce<unknown>(
    (at, key) => (at !== null && typeof at === "object" ? Reflect.get(at, key) : key === 0 ? at : undefined),
    value,
  );
}

/** The smart host's password; null: none, undefined: unusable. A missing file is told by the checks. */
function passwordOf(env: Environment, file: string | null, readFile: ReadFile): string | null | undefined {
  const direct = env[passwordVariable];
  let text = direct === undefined || direct === "" ? null : direct;
  if (text === null && file !== null) {
    try {
      text = readFile(file)?.replace(/\r?\n$/, "") ?? null;
    } catch {
      return null;
    }
  }
  return text === null || text === "" ? null : (secret.safeParse(text).data ?? undefined);
}

function assemble(
  value: OptionValues,
  given: { socket: string; password: string | null; dev: boolean },
): Config {
  const { hostname } = value;
  const host = value["outbound.smart_host.host"];
  return {
    hostname,
    publicUrl: value.public_url ?? publicUrlOf(given.dev ? "127.0.0.1" : hostname, value["http.listen"]),
    dataDir: value.data_dir,
    socket: given.socket,
    tls: {
      mode: value["tls.mode"] ?? (value["tls.cert"] === null ? "self-signed" : "files"),
      certFile: value["tls.cert"],
      keyFile: value["tls.key"],
    },
    http: { listen: value["http.listen"], trustedProxies: value["http.trusted_proxies"] },
    relay: {
      starttls: value["relay.starttls"],
      implicitTls: value["relay.implicit_tls"],
      maxConnections: value["relay.max_connections"],
      maxConnectionsPerIp: value["relay.max_connections_per_ip"],
      trusted: value["relay.trusted"],
      trustedProxies: value["relay.trusted_proxies"],
    },
    inbound: { listen: value["inbound.listen"] },
    outbound: {
      port: value["outbound.port"],
      source: value["outbound.source"],
      allowNetworks: value["outbound.allow_networks"],
      retryMs: value["outbound.retry"],
      maxAgeMs: value["outbound.max_age"],
      tls: value["outbound.tls"],
      timeouts: {
        connectMs: value["outbound.timeouts.connect"],
        greetingMs: value["outbound.timeouts.greeting"],
        commandMs: value["outbound.timeouts.command"],
        dataMs: value["outbound.timeouts.data"],
        dotMs: value["outbound.timeouts.dot"],
      },
      shapingFile: value["outbound.shaping_file"],
      sign: value["outbound.sign"],
      smartHost:
        host === null
          ? null
          : {
              host,
              port: value["outbound.smart_host.port"],
              user: value["outbound.smart_host.user"],
              password: given.password,
              tls: value["outbound.smart_host.tls"],
              allowUnverifiedPassword: value["outbound.smart_host.allow_unverified_password"],
            },
    },
    dns: { servers: value["dns.servers"], timeoutMs: value["dns.timeout"], tries: value["dns.tries"] },
    webhooks: {
      allowNetworks: value["webhooks.allow_networks"],
      caFile: value["webhooks.ca_file"],
      scheduleMs: value["webhooks.schedule"],
      timeoutMs: value["webhooks.timeout"],
    },
    limits: {
      maxQueue: value["limits.max_queue"],
      minFreeShare: value["limits.min_free_space"],
      rates: value["limits.rates"],
    },
    retention: {
      contentMs: value["retention.content"],
      messagesMs: value["retention.messages"],
      eventsMs: value["retention.events"],
      auditMs: value["retention.audit"],
    },
    guard: value.guard,
    feedback: { loops: value["feedback.loops"] },
    operations: { email: value["operations.email"], from: value["operations.from"] },
    log: { level: value["log.level"] },
    dev: given.dev,
  };
}

function publicUrlOf(host: string, listen: readonly ListenAddress[]): string {
  const port = listen.find((address) => "port" in address)?.port ?? 443;
  return port === 443 || port === 0 ? `https://${host}` : `https://${host}:${port}`;
}
