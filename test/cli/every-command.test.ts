// What holds for every command, whatever it does: its help, wrong command lines, a daemon that is not there, one that
// refuses, and the output of one that answers. The commands are those that the program registers, and the answers are made
// of the API's own description, so that a new command and a new field are covered by themselves.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argument, Command, Option } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { programOf, verbsOf } from "../../docs/generate.ts";
import type { Clock } from "../../src/clock.ts";
import { routesAsData } from "../support/program.ts";
import { sampleOf } from "../support/samples.ts";
import { svc, type Ran, type World } from "./world.ts";
import { removeFolder } from "../support/folders.ts";

interface Entry {
  line: string;
  words: string[];
  command: Command;
}

const entries = (await programOf()).flatMap((noun): Entry[] => {
  const verbs = verbsOf(noun);
  const all = verbs.length === 0 ? [{ words: [], command: noun }] : verbs;
  return all.map(({ words, command }) => {
    const line = [noun.name(), ...words].join(" ");
    return { line, words: [noun.name(), ...words], command };
  });
});
const named = entries.map((entry): [string, Entry] => [entry.line, entry]);
const withVerbs = (await programOf()).flatMap((noun): [string, Command][] =>
  noun.commands.length === 0 ? [] : [[noun.name(), noun]],
);

/** Those that need no daemon, and the exit code that they come to in a world without configuration. */
const local: Record<string, number> = {
  init: 2, // the samples name no host
  serve: 78,
  restore: 2, // nobody confirms it
  migrate: 3, // there is no database
  "config check": 78,
  "config set": 2,
  "config unset": 2,
  "config show": 78,
  "config get": 2,
  "config schema": 0,
  "config systemd-unit": 78,
  top: 2, // it is no terminal
  "bounces explain": 0,
  "webhooks verify": 7, // the sample is not signed
  completion: 0,
};
/** Those whose code is not 0 where the daemon answers with the samples: a check that fails, a stream that ends. */
const judged: Record<string, number> = {
  healthcheck: 1,
  reload: 1,
  "cert renew": 1,
  "webhooks test": 1,
  "events tail": 6,
  "domains verify": 7,
};
/** They ask until something changes, and the samples never do. */
const endless = ["webhooks listen", "backup", "audit tail", "db check", "prune"];
/** They print a file as it is, under --json too. */
const files = ["messages raw", "inbox raw", "suppressions export"];
/** They show what the API's description leaves open. */
const undescribed = ["status", "smtp-credentials snippet"];
/** They need a key and a server beside the daemon. */
const elsewhere = ["domains publish"];
/** What a command asks for beside its required arguments and options. */
const asked: Record<string, string[]> = {
  send: ["--text", "x"],
  ...Object.fromEntries(
    ["retry", "hold", "release", "fail", "delete"].map((verb) => [`queue ${verb}`, ["--all"]]),
  ),
  "queue pause": ["--domain", "x.example"],
  "queue resume": ["--domain", "x.example"],
  "bounces explain": ["550 5.1.1 no such user"],
  "domains update": ["--subdomains", "on"],
  "keys set": ["--name", "x"],
  "accounts set": ["--quota", "5"],
  "webhooks update": ["--description", "x"],
  "webhooks verify": ["--header", "X-Svc-Timestamp: 1764233122"],
  "pools update": ["--default"],
  "limits set": ["--connections", "5"],
};

let folder = "";
let socket = "";
let refusing = "";
let closed = "";
const servers: (() => void)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-every-command-"));
  writeFileSync(join(folder, "file"), "email,reason\na@x.example,manual\n");
  socket = await listen(join(folder, "admin.sock"), answer);
  closed = await listen(join(folder, "closed.sock"), refuse);
  chmodSync(closed, 0);
  chmodSync(folder, 0o755);
  refusing = await listen(join(folder, "refusing.sock"), refuse);
});
afterAll(() => {
  for (const close of servers) close();
  removeFolder(folder);
});

async function listen(
  path: string,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  servers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return path;
}

const routes = routesAsData()
  .filter(({ listeners }) => listeners !== "public")
  .map((route) => ({
    route,
    pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    fixed: !route.path.includes("{"),
  }))
  .toSorted((a, b) => Number(b.fixed) - Number(a.fixed));

/** The first success that the route describes. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const path = new URL(request.url ?? "/", "http://socket").pathname;
  const found = routes.find(({ route, pattern }) => route.method === request.method && pattern.test(path));
  const [status, described] = Object.entries(found?.route.answers ?? {})[0] ?? ["500", null];
  const { type, body } = sampleOf(described, String(request.headers.accept));
  response.writeHead(Number(status), type === null ? {} : { "content-type": type });
  response.end(type === "application/x-ndjson" ? `${body}\n` : body);
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.writeHead(403, { "content-type": "application/json" });
  response.end(
    JSON.stringify({ error: { code: "scope_insufficient", message: "No.", required_scope: "admin" } }),
  );
}

/** Values that a command takes, by what its help calls them. */
const samples: Record<string, string> = {
  span: "1h",
  time: "1h",
  n: "5",
  "on|off": "on",
  scope: "send",
  shell: "bash",
  client: "swaks",
  url: "https://x.example/hook",
  address: "a@x.example",
  addresses: "a@x.example",
  email: "a@x.example",
};
/** The address of a machine, where it is not that of a mailbox. */
const address = "192.0.2.1";

function sampleFor(name: string, noun = ""): string {
  if (name === "address" && ["ips", "blacklists"].includes(noun)) return address;
  if (["file", "dir", "body"].includes(name)) return join(folder, "file");
  return samples[name] ?? "acme";
}

const valueOf = ({ flags }: Option): string => /[<[]([^>\]]+)/.exec(flags)?.[1]?.replace("...", "") ?? "";

const argumentsOf = ({ words, command }: Entry): string[] =>
  command.registeredArguments
    .filter((one: Argument) => one.required)
    .map((one) => sampleFor(one.name(), words[0]));

/** A command line with all that the command asks for, its prompts answered. */
function completeLine(entry: Entry): string[] {
  const { words, command } = entry;
  const given = argumentsOf(entry);
  const options = command.options.flatMap((option) => {
    if (option.long === "--yes") return ["--yes"];
    if (option.long === "--confirm" && words[0] !== "restore") return ["--confirm", given[0] ?? ""];
    if (!option.mandatory) return [];
    return [option.long ?? "", sampleFor(valueOf(option))];
  });
  return [...words, ...given, ...(asked[entry.line] ?? []), ...options];
}

/** Its timers are over at once, as far as the loop's turns go. */
function hastyClock(): Clock {
  let now = Date.parse("2026-11-27T09:00:00.000Z");
  return {
    now: () => now,
    monotonic: () => now,
    after(delayMs, run) {
      const immediate = setImmediate(() => {
        now += delayMs;
        run();
      });
      return { cancel: () => clearImmediate(immediate) };
    },
  };
}

function ran(args: string[], world: World = {}): Promise<Ran> {
  return svc(args, {
    home: folder,
    cwd: folder,
    env: { NO_COLOR: "1", SVC_WEBHOOK_SECRET: "s" },
    clock: hastyClock(),
    ...world,
  });
}

/** As a user who may not open the socket: root may open every one. */
async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  const root = process.geteuid?.() === 0;
  if (root) process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    if (root) process.seteuid?.(0);
  }
}

/** What no command may ever print. */
function expectNoBug({ out, err }: Ran): void {
  expect(err).not.toContain("a bug");
  expect(out + err).not.toMatch(/^\s+at .+:\d+:\d+/m);
  expect(out + err).not.toMatch(/\[object Object\]|undefined|NaN/);
  expect(out + err).not.toContain("\u001b");
}

test("there are commands, each with a line of its own that says what it does", () => {
  expect(entries.length).toBeGreaterThan(80);
  const bare = entries.filter(({ command }) => command.description() === "");
  expect(bare.map(({ line }) => line)).toEqual([]);
  const undescribed = entries.flatMap(({ line, command }) =>
    command.options.filter(({ description }) => description === "").map(({ flags }) => `${line} ${flags}`),
  );
  expect(undescribed).toEqual([]);
});

test("no command has an option of the program's own name: the program would take it", async () => {
  const { out } = await ran(["status", "--help"], { columns: 80 });
  const own = new Set(out.split("Global Options:\n")[1]?.match(/--[a-z-]+/g));
  expect(own).toContain("--url");
  const taken = entries.flatMap(({ line, command }) =>
    command.options.filter(({ long }) => own.has(long ?? "")).map(({ flags }) => `${line} ${flags}`),
  );
  expect(taken).toEqual([]);
});

describe("a person who knows no command finds it by --help alone", () => {
  /** The first word of the one line of a help that speaks of it. */
  const follow = async (words: string[], speaksOf: RegExp): Promise<string> => {
    const { out } = await ran([...words, "--help"], { columns: 80 });
    const lines = out
      .slice(out.search(/^(?:Commands|[A-Z][a-z ]+):$/m))
      .replaceAll(/\n {8,}/g, " ")
      .split("\n");
    const found = lines.filter((text) => speaksOf.test(text) && /^ {2}[a-z]/.test(text));
    expect(found, `${words.join(" ")}: ${speaksOf.source}`).toHaveLength(1);
    return /^ +([a-z-]+)/.exec(found[0] ?? "")?.[1] ?? "";
  };
  test.each([
    ["to rotate a DKIM key", [/DKIM/, /DKIM.*rotate/, /new DKIM keys/], "domains dkim rotate"],
    ["to send a webhook's events again", [/endpoints:.*replay/, /queue events again/], "webhooks replay"],
    ["to pause mail to a domain", [/^ {2}queue .*pause/, /no attempts for a domain/], "queue pause"],
    ["to stop a domain from sending", [/sender domains/, /refuse mail from it/], "domains suspend"],
  ])("%s", async (_what, path, command) => {
    const words: string[] = [];
    for (const speaksOf of path) words.push(await follow(words, speaksOf));
    expect(words.join(" ")).toBe(command);
  });
});

/** Nouns and groups of verbs, which do nothing by themselves. */
const groups = [
  ...new Set(
    entries.flatMap(({ words }) => words.slice(0, -1).map((_, i) => words.slice(0, i + 1).join(" "))),
  ),
].filter((line) => line !== "stats"); // it shows the summary

describe.each(groups)("svc %s", (line) => {
  test("without a verb, or with one that there is not, it is exit 2 and says what there is, on stderr alone", async () => {
    const alone = await ran(line.split(" "), { socket });
    expect(alone).toMatchObject({ code: 2, out: "" });
    expect(alone.err).toContain(`Usage: svc ${line}`);
    const wrong = await ran([...line.split(" "), "nonsense"], { socket });
    expect(wrong).toMatchObject({ code: 2, out: "" });
    expect(wrong.err).toContain("unknown command");
    for (const one of [alone, wrong]) expectNoBug(one);
  });
});

describe.each(named)("svc %s", (line, entry) => {
  const { words, command } = entry;

  test("--help is on stdout with every option, and fits 60 columns", async () => {
    const help = await ran([...words, "--help"], { columns: 60 });
    expect(help).toMatchObject({ code: 0, err: "" });
    expect(help.out).toContain(`Usage: svc ${line}`);
    for (const { long, hidden } of command.options) if (!hidden) expect(help.out).toContain(long);
    const beforeExamples = help.out.split(/\nExamples?:\n/)[0] ?? "";
    const wide = beforeExamples
      .split("\n")
      .filter((text) => text.length > 60 && !text.startsWith("Usage:") && /\S\s+\S.*\s\S/.test(text));
    expect(wide).toEqual([]);
    expectNoBug(help);
  });

  test("an unknown option, a missing argument and one too many are exit 2, on stderr alone", async () => {
    const most = command.registeredArguments.some((one) => one.variadic) ? null : ["x", "y", "z"];
    const lines = [
      [...completeLine(entry), "--no-such-option"],
      ...(argumentsOf(entry).length > 0 ? [words] : []),
      ...(most === null ? [] : [[...completeLine(entry), ...most]]),
    ];
    for (const args of lines) {
      const wrong = await ran(args, { socket });
      expect([args, wrong.code, wrong.out]).toEqual([args, 2, ""]);
      expect(wrong.err).not.toBe("");
      expectNoBug(wrong);
    }
  });

  test("without a daemon it is exit 6 and says what to run, unless it needs none", async () => {
    const alone = await ran(completeLine(entry), { socket: join(folder, "none.sock") });
    expect(alone.code).toBe(local[line] ?? 6);
    if (local[line] === undefined) {
      expect(alone.out).toBe("");
      expect(alone.err).toContain("svc serve");
    }
    expectNoBug(alone);
  });

  if (local[line] === undefined)
    test("a socket that may not be opened is exit 4, with what to do", async () => {
      const shut = await asNobody(() => ran(completeLine(entry), { socket: closed }));
      expect(shut).toMatchObject({ code: 4, out: "" });
      expect(shut.err).toContain(`no permission to open the admin socket ${closed}`);
      expect(shut.err).toContain("sudo");
      expectNoBug(shut);
    });

  if (local[line] === undefined)
    test("a refusal is exit 4, on stderr alone, as JSON under --json", async () => {
      const plain = await ran(completeLine(entry), { socket: refusing });
      if (line === "healthcheck") return expect(plain).toMatchObject({ code: 1, out: "" }); // any answer but 200
      expect(plain).toMatchObject({ code: 4, out: "" });
      expect(plain.err).toContain("This needs a key of scope admin.");
      expectNoBug(plain);
      const json = await ran(["--json", ...completeLine(entry)], { socket: refusing });
      expect(json).toMatchObject({ code: 4, out: "" });
      expect(JSON.parse(json.err)).toMatchObject({ error: { code: "scope_insufficient" } });
    });

  if (local[line] === undefined && ![...endless, ...undescribed, ...elsewhere].includes(line))
    test("an answer is shown piped, on 60 columns and as JSON, and no control character of it is obeyed", async () => {
      const code = judged[line] ?? 0;
      const piped = await ran(completeLine(entry), { socket });
      const terminal = await ran(completeLine(entry), { socket, tty: true, columns: 60 });
      for (const shown of [piped, terminal]) {
        expect([shown.code, shown.err]).toEqual([
          code,
          code === 0 ? expect.any(String) : expect.stringMatching(/./),
        ]);
        expectNoBug(shown);
      }
      const json = await ran(["--json", ...completeLine(entry)], { socket });
      expect(json.code).toBe(code);
      expectNoBug(json);
      if (!files.includes(line))
        for (const row of json.out.split("\n").filter((text) => text !== ""))
          expect(typeof JSON.parse(row)).toBe("object");
    });
});

test.each(withVerbs)("svc help says of %s all its verbs, or that there are more", (_name, noun) => {
  const about = noun.description();
  const said = about.split(/[^a-z-]+/);
  const missing = noun.commands.map((verb) => verb.name()).filter((verb) => !said.includes(verb));
  expect(about.endsWith("…") ? [] : missing).toEqual([]);
});
