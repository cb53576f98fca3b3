// Which module imports which, and which package belongs to which module, as data. An arrow that the table does not have
// is a decision: change the table and ARCHITECTURE.md together. One that the code no longer has leaves the table.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");

/**
 * Which modules each module imports, type imports included: no others, and all of these. From the bottom up: a row names
 * only rows above it.
 */
const table: Record<string, string> = {
  // What anything may use.
  clock: "",
  csv: "",
  errors: "",
  ids: "",
  model: "",
  "open-files": "",
  owner: "",
  service: "",
  thread: "",
  "unsafe-text": "",
  "word-list": "",
  cursor: "errors",
  fairness: "clock",
  log: "clock model unsafe-text",
  "value-schemas": "ids model",
  mail: "model",
  config: "mail model word-list",
  // What stands on the machine.
  store: "clock cursor fairness ids log model owner thread",
  dns: "clock fairness log mail model",
  https: "clock dns fairness",
  tls: "clock config https log model service unsafe-text",
  signing: "log mail thread",
  parsing: "clock errors fairness log mail model thread",
  // What is known of an account's things.
  access: "clock errors ids log model service store",
  domains: "clock dns errors fairness ids mail model service store",
  events: "clock ids mail model value-schemas",
  pools: "clock dns errors log mail model service store",
  dnsbl: "clock dns events log model service store unsafe-text",
  suppressions: "clock dns log mail model service store",
  stats: "clock cursor errors model service store",
  "mta-sts": "clock dns fairness https log mail model store",
  doctor: "clock config dns dnsbl errors log model open-files pools service store",
  tracking: "access clock events fairness ids log mail model service store suppressions",
  // What is done with mail.
  "sending-pause": "clock config errors log model service store",
  delivery: "clock config dns fairness log mail model open-files pools",
  sandbox: "access clock domains events log mail model store tracking",
  queue: "clock config events fairness ids log mail model pools service store suppressions",
  outbound: "clock delivery fairness log mail model parsing pools queue sandbox store tracking",
  submission: "access clock config domains errors ids mail model pools queue sandbox sending-pause store",
  webhooks: "clock config dns errors events fairness log model service store",
  notifications: "clock config dnsbl doctor domains ids log mail model pools store submission tls webhooks",
  "tls-reports": "clock dns fairness https log mail model notifications service store",
  feedback: "clock config dns events log mail model notifications store suppressions tracking",
  // What keeps the appliance running.
  retention: "clock config errors log model service store",
  maintenance: "clock errors model store",
  backup: "clock config errors log model service store",
  activity: "clock model queue store",
  metrics: "clock model store",
  status: "clock config dnsbl maintenance model pools queue store",
  // Interfaces.
  http: "access activity backup clock config csv dns dnsbl doctor domains errors events feedback ids log mail maintenance model open-files parsing pools queue retention sandbox sending-pause service stats store submission tls tracking value-schemas webhooks word-list",
  relay:
    "access clock config errors feedback log mail maintenance model sending-pause service store submission tls",
  cli: "access backup clock config csv dns doctor domains log mail model suppressions unsafe-text webhooks word-list",
  // The composition.
  boot: "clock log service store",
  "service-manager": "clock log",
  jobs: "clock log service",
  setup: "access clock config dns domains ids log model owner pools store",
  offline: "backup clock config doctor ids log model owner pools setup store tls",
  daemon:
    "access activity backup boot clock config delivery dnsbl doctor domains events feedback http https ids jobs log mail maintenance metrics model mta-sts notifications outbound parsing pools queue relay retention sandbox sending-pause service service-manager setup signing stats status store submission suppressions thread tls tls-reports tracking webhooks",
  bin: "cli daemon offline setup",
};

/** The modules that import each package. Pure functions of nodemailer are mail's. */
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
  ink: ["cli"],
  react: ["cli"],
  "csv-parse": ["cli"],
  "node-cron": ["jobs"],
  "prom-client": ["metrics"],
  pino: ["log"],
  yaml: ["config"],
  "ipaddr.js": ["dns"],
  tldts: ["delivery"],
  "@peculiar/x509": ["tls"],
  "reflect-metadata": ["tls"],
  zod: ["config", "events", "http", "submission", "value-schemas"],
};

interface Import {
  file: string;
  target: string;
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
    };
  }),
);

/** `mail` for src/mail/address.ts, `clock` for src/clock.ts, `bin` for bin/svc.ts. */
function moduleOf(path: string): string {
  const [top = "", second = ""] = relative(root, path).split("/");
  return top === "src" ? second.replace(/\.tsx?$/, "") : top;
}

const inside = imports.filter(({ target }) => target.startsWith(root));
const between = inside.filter(({ file, target }) => moduleOf(file) !== moduleOf(target));
const modules = [...new Set(files.map(moduleOf))];
const name = (path: string): string => relative(root, path);
const wordsOf = (text: string): string[] => text.split(" ").filter((word) => word !== "");

function importsOf(of: string): Set<string> {
  return new Set(between.filter(({ file }) => moduleOf(file) === of).map(({ target }) => moduleOf(target)));
}

test("every module imports what the table says, and every row is true", () => {
  const found = Object.fromEntries(modules.map((of) => [of, [...importsOf(of)].toSorted().join(" ")]));
  expect(found).toEqual(table);
});

test("a row of the table names only rows above it", () => {
  const rows = Object.keys(table);
  const upwards = rows.flatMap((row, place) =>
    wordsOf(table[row] ?? "")
      .filter((target) => rows.indexOf(target) === -1 || rows.indexOf(target) >= place)
      .map((target) => `${row} -> ${target}`),
  );
  expect(upwards).toEqual([]);
});

test("other modules import only store.ts of the store; daemon.ts, setup.ts and offline.ts, which choose the engine, open it", () => {
  const inner = between
    .filter(({ target }) => moduleOf(target) === "store" && name(target) !== "src/store/store.ts")
    .map(({ file, target }) => `${name(file)} -> ${name(target)}`);
  expect(inner.toSorted()).toEqual([
    "src/daemon.ts -> src/store/sqlite/sqlite-store.ts",
    "src/offline.ts -> src/store/sqlite/migrate-offline.ts",
    "src/offline.ts -> src/store/sqlite/restore.ts",
    "src/offline.ts -> src/store/sqlite/sqlite-store.ts",
    "src/setup.ts -> src/store/sqlite/sqlite-store.ts",
  ]);
});

test("the store's engine knows no noun: of the store it imports itself, its part of the interface and the errors", () => {
  const engine = "src/store/sqlite/engine/";
  const others = inside
    .filter(({ file, target }) => name(file).startsWith(engine) && !name(target).startsWith(engine))
    .map(({ target }) => name(target))
    .filter((target) => moduleOf(join(root, target)) === "store" || moduleOf(join(root, target)) === "model");
  expect([...new Set(others)].toSorted()).toEqual(["src/store/interface/engine.ts", "src/store/store.ts"]);
});

test("of the store, only the folder of an engine knows an engine: the rest imports no file and no package of one, and opens no files", () => {
  const neutral = imports.filter(({ file }) => /^src\/store\/(?!sqlite\/)/.test(name(file)));
  const found = neutral.filter(
    ({ target }) =>
      target.includes("/store/sqlite/") ||
      target.startsWith("node:fs") ||
      !(target.startsWith("/") || target.startsWith("node:")),
  );
  expect(neutral.length).toBeGreaterThan(0);
  expect(found.map(({ file, target }) => `${name(file)} -> ${target}`)).toEqual([]);
});

test("the store's interface names nothing of an engine", () => {
  const own = files.filter((file) => name(file).startsWith("src/store/interface/"));
  const named = own.filter((file) =>
    /sqlite|pragma|\bwal|write-ahead|rowid|statfs|fsync/i.test(readFileSync(file, "utf8")),
  );
  expect(own.length).toBeGreaterThan(0);
  expect(named.map(name)).toEqual([]);
});

test("no file imports itself in a circle", () => {
  const edges = new Map<string, string[]>();
  for (const { file, target } of inside) edges.set(file, [...(edges.get(file) ?? []), target]);
  expect(circle(edges)).toEqual([]);
});

test("a package is imported by its owners, and by each of them", () => {
  const found = new Map<string, Set<string>>();
  for (const { file, target } of imports) {
    if (target.startsWith("/") || target.startsWith("node:")) continue;
    const parts = target.split("/");
    const used = target.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "");
    found.set(used, (found.get(used) ?? new Set()).add(moduleOf(file)));
  }
  expect(Object.fromEntries([...found].map(([used, by]) => [used, [...by].toSorted()]))).toEqual(owners);
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
    [/\bprocess\.env\b/, (file) => ["config", "cli", "bin"].includes(moduleOf(file))],
  ];
  const broken = files.flatMap((file) => {
    const code = readFileSync(file, "utf8").replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
    return rules
      .filter(([pattern, allowed]) => pattern.test(code) && !allowed(file))
      .map(([pattern]) => `${name(file)}: ${pattern.source}`);
  });
  expect(broken).toEqual([]);
});

test("a test's folder goes by removeFolder alone, which waits for what still writes into it", () => {
  const all = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  const broken = all.filter(
    (file) =>
      file.endsWith(".ts") &&
      file !== "support/folders.ts" &&
      /\brm(?:Sync)?\([^;]*recursive: true/.test(readFileSync(join(root, "test", file), "utf8")),
  );
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
