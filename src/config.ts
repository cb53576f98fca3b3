// Every option of svc.yaml, resolved: units in the names, defaults filled in; and the
// loader that makes it of flags, environment and files, in that order of precedence. The options themselves
// are in config/options.ts; here is the only place that reads files and the environment for them.
// Every fault is reported at once; a configuration with a fault is not used.
import { hostname as systemName } from "node:os";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { crossChecks, fileFaults, type Read } from "./config/checks.ts";
import { derive, type Derived } from "./config/derived.ts";
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
  type DefaultContext,
} from "./config/options.ts";
import { placesOf, type Environment, type Places } from "./config/places.ts";
import { secret, socketPath, type ListenAddress } from "./config/values.ts";
import type { ListenerTlsMode } from "./model/tls.ts";

export type { ConfigFault, ListenAddress };

export interface SmartHost extends Omit<Derived["outbound"]["smartHost"], "host" | "passwordFile"> {
  host: string;
  password: string | null;
}

export type OutboundConfig = Omit<Derived["outbound"], "smartHost"> & { smartHost: SmartHost | null };

/** The options (config/options.ts) by section, and what is derived from them and from the machine. */
export interface Config extends Omit<Derived, "publicUrl" | "tls" | "outbound" | "backup"> {
  /** Base address without a trailing slash, e.g. `https://mail.acme.example`. */
  publicUrl: string;
  /** Path of the admin socket. */
  socket: string;
  tls: Omit<Derived["tls"], "mode"> & { mode: ListenerTlsMode };
  outbound: OutboundConfig;
  backup: Omit<Derived["backup"], "to"> & { to: string };
  /** The files that were read. */
  files: string[];
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

/** An option as it was written. `source`: the file that gives it, `environment`, `command line`; null: its default holds. */
export interface OptionOrigin {
  written: unknown;
  source: string | null;
  /** Of a file. */
  line: number | null;
}

export interface ValidConfig {
  config: Config;
  files: string[];
  /** Every option, read. */
  values: OptionValues;
  originOf(path: OptionPath): OptionOrigin;
}
export type ConfigResult = ValidConfig | { faults: ConfigFault[] };

/** The configuration that `serve` runs with. */
export function loadConfig(request: ConfigRequest): ConfigResult {
  const places = placesOf(request);
  return resolve(request, {
    places,
    ...fileLayers({ ...request, only: request.flags.config ?? request.env["SVC_CONFIG"] }, places),
    dev: false,
  });
}

/** What `serve --dev` runs with: loopback ports above 1024, no file read. Environment variables apply here too. */
export function devConfig(request: ConfigRequest): ConfigResult {
  return resolve(request, { places: placesOf(request), layers: [], files: [], faults: [], dev: true });
}

/** The options that have another value now than `then`; or every fault of the configuration as it is now. */
export function changedOptions(
  then: ValidConfig,
  request: ConfigRequest,
): { changed: OptionPath[] } | { faults: string[] } {
  const now = loadConfig(request);
  if ("faults" in now) return { faults: now.faults.map(faultText) };
  const text = ({ values }: ValidConfig, path: OptionPath): string => JSON.stringify(values[path]);
  return { changed: optionPaths.filter((path) => text(now, path) !== text(then, path)) };
}

/** The content of outbound.shaping_file, null where none is named; or every fault of it, in the form of a configuration's. */
export function readShapingFile(file: string | null): { content: unknown } | { faults: string[] } {
  if (file === null) return { content: null };
  const path = "outbound.shaping_file";
  // Read once: what is judged is what is used.
  let text: string | null = null;
  const faults = fileFaults(path, file, (name) => (text = readTextFile(name)));
  if (faults.length === 0) return { content: parseYaml(text ?? "") };
  return { faults: faults.map((fault) => faultText({ ...fault, source: file, line: null })) };
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

/** Records a fault of an option, or of the `part` of its value that is wrong. */
type ReportFault = (path: OptionPath, part: PropertyKey[], found: string, expected: string) => void;

function resolve(request: ConfigRequest, sources: Sources): ConfigResult {
  const layers = [flagLayer(request.flags), environmentLayer(request.env), ...sources.layers];
  const faults = [...sources.faults, ...layers.flatMap((layer) => layer.faults)];
  // If a file could not be read as a whole, its options are not missing: only given values are checked then.
  const unread = faults.some(({ path }) => path === "");
  const given = (path: OptionPath): Given | undefined =>
    layers.find((layer) => layer.given.has(path))?.given.get(path);
  const report: ReportFault = (path, part, found, expected) => {
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

  const machineName = request.machineName ?? systemName();
  const around: DefaultContext = { places: sources.places, machineName, dev: sources.dev };
  const { all, read } = readOptions({ given, around, unread, report });
  const readFile = request.readFile ?? readTextFile;
  const login = passwordOf(request.env, read["outbound.smart_host.password_file"] ?? null, readFile);
  if (login === undefined)
    report("outbound.smart_host.password_file", [], "more than one line of text", "a password of one line");
  const isGiven = (path: OptionPath): boolean => given(path) !== undefined;
  const surely = { dev: sources.dev, readFile, passwordGiven: login !== null, isGiven };
  for (const one of unread ? [] : crossChecks(read, surely)) report(one.path, [], one.found, one.expected);
  const socket = readSocket(request, standardSocket(sources.places, read.data_dir ?? "/"));
  if ("expected" in socket) faults.push(socket);
  if (faults.length > 0 || !all || "expected" in socket || login === undefined) {
    return {
      faults: faults.toSorted((a, b) => a.source.localeCompare(b.source) || (a.line ?? 0) - (b.line ?? 0)),
    };
  }
  return {
    config: assemble(all, {
      socket: socket.path,
      password: login,
      dev: sources.dev,
      backups: sources.places.backups,
      files: sources.files,
    }),
    files: sources.files,
    values: all,
    originOf(path) {
      const at = given(path);
      if (at === undefined) return { written: standardOf(path, around), source: null, line: null };
      return { written: at.raw, source: at.source, line: at.line([]) };
    },
  };
}

/** `all`: every option, null if any is wrong. `read`: those that are right. */
function readOptions(deps: {
  given(path: OptionPath): Given | undefined;
  around: DefaultContext;
  unread: boolean;
  report: ReportFault;
}): { all: OptionValues | null; read: Read } {
  const { given, around, unread, report } = deps;
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
    report(path, part, whole ?? unknown ?? shown(partOf(raw[path], part)), issue.message);
  }
  return { all: judged.data ?? null, read: someOptions.parse(readable) };
}

/** Of --socket, SVC_SOCKET or `standard`, in this order. */
function readSocket({ flags, env }: ConfigRequest, standard: string): { path: string } | ConfigFault {
  const given = flags.socket ?? env["SVC_SOCKET"];
  const read = socketPath.safeParse(given ?? standard);
  if (read.success) return { path: read.data };
  return {
    source: flags.socket !== undefined ? "command line" : "environment",
    line: null,
    path: "socket",
    found: shown(given),
    expected: read.error.issues[0]?.message ?? "",
  };
}

function standardOf(path: OptionPath, around: DefaultContext): unknown {
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

/** The smart host's password; null: none, undefined: unusable. The checks report a missing file. */
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
  given: { socket: string; password: string | null; dev: boolean; backups: string | null; files: string[] },
): Config {
  const derived = derive(value);
  const { tls, outbound, http } = derived;
  const { host, passwordFile: _, ...smartHost } = outbound.smartHost;
  return {
    ...derived,
    publicUrl: derived.publicUrl ?? publicUrlOf(given.dev ? "127.0.0.1" : derived.hostname, http.listen),
    tls: { ...tls, mode: tls.mode ?? (tls.cert === null ? "self-signed" : "files") },
    outbound: {
      ...outbound,
      smartHost: host === null ? null : { ...smartHost, host, password: given.password },
    },
    backup: {
      ...derived.backup,
      to: derived.backup.to ?? given.backups ?? join(derived.dataDir, "backups"),
    },
    files: given.files,
    socket: given.socket,
    dev: given.dev,
  };
}

function publicUrlOf(host: string, listen: readonly ListenAddress[]): string {
  const port = listen.find((address) => "port" in address)?.port ?? 443;
  return port === 443 || port === 0 ? `https://${host}` : `https://${host}:${port}`;
}
