// What the operator gave, before it is judged: each source (flags, environment, files)
// becomes a layer, a map from option to raw value with its place. Keys that are unknown, misspelt or of a coming
// version are faults here; values are judged by their types later.
import { isMap, isNode, isScalar, LineCounter, parse, parseDocument, type Document, type Node } from "yaml";
import type { Environment } from "./places.ts";
import { environmentName, notYet, optionPaths, structured, type OptionPath } from "./options.ts";

export interface ConfigFault {
  /** A file, `environment` or `command line`. */
  source: string;
  line: number | null;
  /** `outbound.max_age`, SVC_OUTBOUND_MAX_AGE; empty for the file as a whole. */
  path: string;
  found: string;
  expected: string;
}

export interface Given {
  raw: unknown;
  source: string;
  /** Name under which this source knows the option. */
  name: string;
  /** Line of the value or of a part of it (`[2]`, `["messages-write", "burst"]`). */
  line(part: readonly PropertyKey[]): number | null;
}

export interface Layer {
  given: Map<OptionPath, Given>;
  faults: ConfigFault[];
}

const known: ReadonlySet<string> = new Set(optionPaths);
const sections: ReadonlySet<string> = new Set(optionPaths.flatMap(parents));
const soon = "that is not available in this version yet";

export function isOption(path: string): path is OptionPath {
  return known.has(path);
}

/** One YAML file of at most 1 MB. */
export function fileLayer(file: string, text: string): Layer {
  const layer: Layer = { given: new Map(), faults: [] };
  const lines = new LineCounter();
  const lineAt = (offset: number | undefined): number | null =>
    offset === undefined ? null : lines.linePos(offset).line;
  const fault = (line: number | null, path: string, found: string, expected: string): void =>
    void layer.faults.push({ source: file, line, path, found, expected });

  if (text.length > 2 ** 20) {
    fault(null, "", `${text.length} characters`, "a file of at most 1 MB");
    return layer;
  }
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "silent" });
  for (const error of document.errors)
    fault(lineAt(error.pos[0]), "", `invalid YAML: ${error.message}`, "YAML 1.2");
  if (document.errors.length > 0) return layer;

  const visit = (node: unknown, path: string): void => {
    if (isScalar(node) && node.value === null) return;
    if (node === null || node === undefined) return;
    if (!isMap(node)) {
      const line = isNode(node) ? lineAt(node.range?.[0]) : null;
      return fault(
        line,
        path,
        isNode(node) ? shown(toPlain(node, document)) : shown(node),
        "a section: keys with values",
      );
    }
    for (const pair of node.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : shown(pair.key);
      const here = path === "" ? key : `${path}.${key}`;
      const line = isNode(pair.key) ? lineAt(pair.key.range?.[0]) : null;
      if (isOption(here)) keep(here, pair.value, line);
      else if (sections.has(here)) visit(pair.value, here);
      else if (notYet.includes(here)) fault(line, here, `a key ${soon}`, "no such key");
      else fault(line, here, "a key that svc does not know", suggestion(here));
    }
  };
  const keep = (path: OptionPath, value: unknown, line: number | null): void => {
    if (!isNode(value)) return;
    const raw = toPlain(value, document);
    if (raw === null) return;
    layer.given.set(path, {
      raw,
      source: file,
      name: path,
      line: (part) => lineAt(nodeAt(value, part)?.range?.[0]) ?? line,
    });
  };
  visit(document.contents, "");
  return layer;
}

/** SVC_SECTION_KEY; lists take commas, structures YAML's flow form. Names that start with a section and are not an option are faults. */
export function environmentLayer(env: Environment): Layer {
  const layer: Layer = { given: new Map(), faults: [] };
  const paths = new Map(optionPaths.map((path) => [environmentName(path), path]));
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("SVC_") || value === undefined || value === "") continue;
    const path = paths.get(name);
    if (path !== undefined)
      layer.given.set(path, { raw: fromText(path, value), source: "environment", name, line: () => null });
    else if (name !== passwordVariable && !paths.has(name.replace(/_FILE$/, "")) && inSection(name)) {
      const coming = notYet.find((key) => `${name}_`.startsWith(`${environmentName(key)}_`));
      const near = nearest(name, [...paths.keys()]);
      const found = `a variable ${coming === undefined ? "that svc does not know" : soon}`;
      const expected =
        coming !== undefined
          ? "no such variable"
          : near === null
            ? "an option of svc.yaml"
            : `did you mean ${near}?`;
      layer.faults.push({ source: "environment", line: null, path: name, found, expected });
    }
  }
  return layer;
}

/** The one secret in the configuration; `…_FILE` of it is outbound.smart_host.password_file. */
export const passwordVariable = "SVC_OUTBOUND_SMART_HOST_PASSWORD";

export function flagLayer(flags: Partial<Record<OptionPath, string>>): Layer {
  const given: Layer["given"] = new Map();
  for (const path of optionPaths) {
    const value = flags[path];
    if (value !== undefined)
      given.set(path, { raw: fromText(path, value), source: "command line", name: path, line: () => null });
  }
  return { given, faults: [] };
}

/** A value as an operator may read it in a message: one line, short, no control characters. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? typeof value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** A value as it stands in a flag or a variable: lists take commas, structures YAML's flow form. */
export function fromText(path: OptionPath, text: string): unknown {
  if (structured.has(path)) {
    try {
      return parse(text, { maxAliasCount: 0 }) as unknown;
    } catch {
      return text;
    }
  }
  return text.includes(",") ? text.split(",").map((part) => part.trim()) : text.trim();
}

function inSection(name: string): boolean {
  return [...sections, ...notYet].some((section) => `${name}_`.startsWith(`${environmentName(section)}_`));
}

function toPlain(node: Node, document: Document.Parsed): unknown {
  try {
    return node.toJS(document, { maxAliasCount: 50 }) as unknown;
  } catch {
    return "aliases that cannot be followed";
  }
}

function nodeAt(node: Node, part: readonly PropertyKey[]): Node | null {
  let at: unknown = node;
  for (const key of part) {
    const inner: unknown =
      at !== null && typeof at === "object" && "get" in at && typeof at.get === "function"
        ? at.get(key, true)
        : null;
    if (!isNode(inner)) break;
    at = inner;
  }
  return isNode(at) ? at : null;
}

function parents(path: string): string[] {
  const parts = path.split(".");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("."));
}

function suggestion(path: string): string {
  const parent = path.split(".").slice(0, -1).join(".");
  const names = [...optionPaths, ...sections];
  const near =
    nearest(path, names) ??
    names.find((name) => name.startsWith(`${path}_`) || name.endsWith(`.${path.split(".").at(-1)}`));
  if (near !== undefined && near !== null) return `did you mean ${near}?`;
  const beside = names.filter((name) => name.split(".").slice(0, -1).join(".") === parent);
  return `one of ${beside.map((name) => name.split(".").at(-1)).join(", ")}`;
}

/** The nearest name, where it is near enough to be a slip of the fingers. */
function nearest(name: string, names: readonly string[]): string | null {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_]/g, "");
  let best: { name: string; distance: number } | null = null;
  for (const candidate of names) {
    const distance = editDistance(plain(name), plain(candidate));
    if (distance <= 2 && (best === null || distance < best.distance)) best = { name: candidate, distance };
  }
  return best?.name ?? null;
}

/** Levenshtein's distance, of texts that are keys: short ones. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2 || a.length > 100) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 3;
}
