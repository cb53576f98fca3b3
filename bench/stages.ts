// Reads what `perf script` prints of a Node process that runs with --perf-basic-prof, and adds up samples by stage:
// the room of the nearest caller that is ours, or the library. What runs at the top of the stack says the kind: our
// JavaScript, native code (Node, V8, OpenSSL, SQLite), or the kernel. Functions that V8 inlined count as their callers.
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { basename, join } from "node:path";

export type Kind = "script" | "native" | "kernel";
export type Samples = Record<Kind, number>;

export interface ThreadSamples {
  stages: Map<string, Samples>;
  /** By nearest function of ours, with what is below it. */
  functions: Map<string, Samples>;
  total: number;
}

interface Frame {
  symbol: string;
  binary: string;
}

const collector =
  /Heap::CollectGarbage|Heap::Scavenge|Scavenger|MarkCompact|IncrementalMarking|ConcurrentMarking|Sweeper/;
/** What a stack without any function of ours does, the first that fits. */
const nobodys: [pattern: RegExp, stage: string][] = [
  [/worker::Message|MessagePort/, "messages between threads"],
  [/epoll/, "epoll"],
  [/uv__read|uv__stream_io|uv__server_io|uv__recvmsg/, "reading of sockets"],
  [/CryptoJob|ThreadPoolWork/, "results of libuv's threads"],
  [/sqlite|better_sqlite3/i, "store"],
  [/RunMicrotasks/, "promises"],
];

/** By thread's name. `bundle` is the folder of the built product with its source maps. */
export async function readSamples(
  lines: AsyncIterable<string>,
  bundle: string,
): Promise<Map<string, ThreadSamples>> {
  const threads = new Map<string, ThreadSamples>();
  const sourceOf = sourceFiles(bundle);
  let thread = "";
  let stack: Frame[] = [];
  const end = (): void => {
    if (stack.length > 0) add(threads, thread, stack, sourceOf);
    stack = [];
  };
  for await (const line of lines) {
    const frame = /^\s+[0-9a-f]+ (.*) \((.*)\)$/.exec(line);
    if (frame) stack.push({ symbol: frame[1] ?? "", binary: frame[2] ?? "" });
    else {
      end();
      if (line.trim() !== "") thread = line.trim().replace(/\s+\d+$/, "");
    }
  }
  end();
  return threads;
}

function add(
  threads: Map<string, ThreadSamples>,
  name: string,
  stack: Frame[],
  sourceOf: (symbol: string) => string | null,
): void {
  const thread = threads.get(name) ?? { stages: new Map(), functions: new Map(), total: 0 };
  threads.set(name, thread);
  thread.total++;
  const kind = kindOf(stack[0]);
  const count = (map: Map<string, Samples>, key: string): void => {
    const samples = map.get(key) ?? { script: 0, native: 0, kernel: 0 };
    samples[kind]++;
    map.set(key, samples);
  };
  if (stack.some(({ symbol }) => collector.test(symbol))) return count(thread.stages, "garbage collection");
  for (const { symbol } of stack) {
    const file = symbol.startsWith("JS:") ? sourceOf(symbol) : null;
    if (file === null) continue;
    count(thread.stages, stageOf(file));
    return count(thread.functions, `${/^JS:[*^+~]?'?(\S*) /.exec(symbol)?.[1] || "(anonymous)"} ${file}`);
  }
  count(thread.stages, stageOfNobody(stack));
}

function kindOf(top: Frame | undefined): Kind {
  if (top?.binary === "[kernel.kallsyms]") return "kernel";
  return top && /^(JS:|Builtins_)/.test(top.symbol) ? "script" : "native";
}

function stageOfNobody(stack: Frame[]): string {
  const text = stack.map(({ symbol, binary }) => `${symbol} ${basename(binary)}`).join("\n");
  const found = nobodys.find(([pattern]) => pattern.test(text));
  if (found) return found[1];
  if (stack.some(({ symbol }) => symbol.startsWith("JS:"))) return "events from Node to us";
  return stack.length <= 2 ? "allocation, caller unknown" : "Node, other";
}

/** `src/mail/dkim.ts` → `dkim`; `src/queue/throttle.ts` → `queue`; `node_modules/smtp-server/…` → `smtp-server`. */
function stageOf(file: string): string {
  const library = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1];
  if (library !== undefined) return /drizzle|better-sqlite3|^src$/.test(library) ? "store" : library;
  if (/^src\/mail\/(dkim|body-hash)\.ts$/.test(file)) return "dkim";
  const [, room = "", rest] = file.split("/");
  return rest === undefined ? room.replace(/\.ts$/, "") : room;
}

/** The source of a function of the bundle, `JS:*name file:///…/daemon-X.js:37571:8`; null for Node's own. */
function sourceFiles(bundle: string): (symbol: string) => string | null {
  const known = new Map<string, string | null>();
  const maps = new Map<string, SourceMap | null>();
  const mapOf = (file: string): SourceMap | null => {
    let map = maps.get(file);
    if (map === undefined) {
      try {
        map = new SourceMap(JSON.parse(readFileSync(join(bundle, `${file}.map`), "utf8")) as never);
      } catch {
        map = null; // not of the bundle: a library outside of it
      }
      maps.set(file, map);
    }
    return map;
  };
  return (symbol) => {
    let source = known.get(symbol);
    if (source === undefined) {
      const [, url = "", line, column] = / (?:file:\/\/)?(\/\S+):(\d+):(\d+)$/.exec(symbol) ?? [];
      const entry = url === "" ? null : mapOf(basename(url))?.findEntry(Number(line) - 1, Number(column) - 1);
      const file = entry && "originalSource" in entry ? String(entry.originalSource) : url;
      source = file === "" ? null : file.replace(/^.*?((?:src|bin|node_modules)\/)/, "$1");
      known.set(symbol, source);
    }
    return source;
  };
}
