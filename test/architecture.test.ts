// Which room may import which, and which package belongs to which room, as data. A new arrow
// that this table does not have is a decision: change the table and ARCHITECTURE.md together.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");

/** Tiers from the bottom up: a room imports from its own tier (never in a circle) and from those below. */
const tiers: string[][] = [
  ["mail", "errors", "clock", "ids", "log", "service", "thread", "csv", "unsafe-text", "fairness", "config"],
  ["store", "dns", "tls", "signing", "parsing"],
  ["access", "domains", "events", "suppressions", "pools"],
  ["submission", "queue", "delivery", "outbound", "feedback", "webhooks", "sandbox", "care", "stats"],
  ["http", "relay", "cli"],
  ["setup", "daemon", "jobs"],
  ["bin"],
];

/** Rooms that never meet, although the tiers would let them. */
const strangers: [string, string][] = [
  ["delivery", "store"],
  ["delivery", "queue"],
  ["queue", "webhooks"],
  ["queue", "delivery"],
  ["queue", "signing"],
  ["queue", "sandbox"],
  ["events", "webhooks"],
  ["cli", "store"],
  ["cli", "daemon"],
];

/** The room of each package. Pure functions of nodemailer are mail's. */
const owners: Record<string, string[]> = {
  "better-sqlite3": ["store"],
  "drizzle-orm": ["store"],
  h3: ["http"],
  srvx: ["http"],
  "smtp-server": ["relay"],
  nodemailer: ["mail"],
  entities: ["mail"],
  dns2: ["dns"],
  undici: ["webhooks"],
  commander: ["cli"],
  "node-cron": ["jobs"],
  pino: ["log"],
  yaml: ["config"],
  "ipaddr.js": ["dns"],
  tldts: ["delivery"],
  "@peculiar/x509": ["tls"],
  "reflect-metadata": ["tls"],
  zod: ["config", "http", "submission", "queue"],
};

interface Import {
  file: string;
  target: string;
  typeOnly: boolean;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => /\.tsx?$/.test(path) && statSync(path).isFile());
}

const files = [...filesBelow(join(root, "src")), join(root, "bin/svc.ts")];
const importPattern =
  /(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;"']*?from\s+"([^"]+)"|import\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g;

const imports: Import[] = files.flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(importPattern)].map((match) => {
    const target = match[2] ?? match[3] ?? match[4] ?? "";
    return {
      file,
      target: target.startsWith(".") ? resolve(dirname(file), target) : target,
      typeOnly: match[1] !== undefined,
    };
  }),
);

/** `mail` for src/mail/address.ts, `clock` for src/clock.ts, `bin` for bin/svc.ts. */
function roomOf(path: string): string {
  const [top = "", second = ""] = relative(root, path).split("/");
  return top === "src" ? second.replace(/\.tsx?$/, "") : top;
}

const tierOf = (room: string): number => tiers.findIndex((tier) => tier.includes(room));
const inside = imports.filter(({ target }) => target.startsWith(root));
const name = (path: string): string => relative(root, path);

test("every file belongs to a room of the table", () => {
  expect(files.filter((file) => tierOf(roomOf(file)) === -1).map(name)).toEqual([]);
});

test("imports only go down", () => {
  const upwards = inside
    .filter(({ file, target }) => tierOf(roomOf(target)) > tierOf(roomOf(file)))
    // The words of the store, the rooms' own interfaces, may be named by type where a value passes through.
    .map(({ file, target }) => `${name(file)} -> ${name(target)}`);
  // bin hands the CLI the way to the daemon; the CLI knows only its type.
  expect(upwards).toEqual([]);
});

test("rooms that are strangers stay strangers", () => {
  const met = inside.filter(({ file, target, typeOnly }) =>
    strangers.some(([a, b]) => roomOf(file) === a && roomOf(target) === b && !typeOnly),
  );
  expect(met.map(({ file, target }) => `${name(file)} -> ${name(target)}`)).toEqual([]);
});

test("no file imports itself in a circle", () => {
  const edges = new Map<string, string[]>();
  for (const { file, target } of inside) edges.set(file, [...(edges.get(file) ?? []), target]);
  expect(circle(edges)).toEqual([]);
});

test("no room imports itself in a circle", () => {
  const edges = new Map<string, string[]>();
  for (const { file, target } of inside) {
    if (roomOf(file) !== roomOf(target))
      edges.set(roomOf(file), [...(edges.get(roomOf(file)) ?? []), roomOf(target)]);
  }
  expect(circle(edges)).toEqual([]);
});

test("a package is one room's alone", () => {
  const packages = imports.filter(({ target }) => !target.startsWith("/") && !target.startsWith("node:"));
  const strays = packages.filter(({ file, target }) => {
    const parts = target.split("/");
    const owner = owners[target.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "")];
    return !owner?.includes(roomOf(file));
  });
  expect(strays.map(({ file, target }) => `${name(file)} imports ${target}`)).toEqual([]);
});

test("every source file begins with what it is in charge of", () => {
  const bare = files.filter(
    (file) => !/^(?:\/\/|\/\*)/.test(readFileSync(file, "utf8").replace(/^#!.*\n/, "")),
  );
  expect(bare.map(name)).toEqual([]);
});

test("a file of over 300 lines says in its header why", () => {
  const long = files.filter((file) => {
    const text = readFileSync(file, "utf8");
    const header = text.split("\n").slice(0, 12).join("\n");
    return text.split("\n").length > 301 && !/[Oo]ver 300 lines/.test(header);
  });
  expect(long.map(name)).toEqual([]);
});

test("time is read and timers are set only in clock.ts, the environment only in config and cli", () => {
  const rules: [RegExp, (file: string) => boolean][] = [
    [
      /\bDate\.now\(\)|\bperformance\.now\(\)|(?<![.\w])setTimeout\(|(?<![.\w])setInterval\(/,
      (file) => name(file) === "src/clock.ts",
    ],
    [/\bprocess\.env\b/, (file) => ["config", "cli", "bin"].includes(roomOf(file))],
  ];
  const broken = files.flatMap((file) => {
    const code = readFileSync(file, "utf8").replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
    return rules
      .filter(([pattern, allowed]) => pattern.test(code) && !allowed(file))
      .map(([pattern]) => `${name(file)}: ${pattern.source}`);
  });
  expect(broken).toEqual([]);
});

/** The members of one circle, in order; empty where there is none. */
function circle(edges: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const visit = (node: string, path: string[]): string[] => {
    const at = path.indexOf(node);
    if (at !== -1)
      return [...path.slice(at), node].map((entry) => (entry.startsWith(root) ? name(entry) : entry));
    if (done.has(node)) return [];
    for (const next of edges.get(node) ?? []) {
      const found = visit(next, [...path, node]);
      if (found.length > 0) return found;
    }
    done.add(node);
    return [];
  };
  for (const node of edges.keys()) {
    const found = visit(node, []);
    if (found.length > 0) return found;
  }
  return [];
}
