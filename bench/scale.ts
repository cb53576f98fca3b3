// `npm run bench:scale`: does the cost of a message, or of a question, grow with what is stored? Fills three data
// directories (empty, a tenth, full) with the generator of scale-fill.ts and repeats the same measurements on each in
// turn. Needs root and `npm run build`; everything stays on loopback. The full one holds 10 million finished messages
// with 50 million events, 1 million queued ones and 10 million suppressed addresses; where the disk or the time
// does not hold that history, as much of it as they hold, which the table says. The directories are removed at the end.
//   --rounds N     5
//   --messages N   of one measurement of CPU; 10000
//   --minutes M    for filling, about; 15
//   --disk GB      at most, for all directories; 40, and never more than two thirds of what is free
//   --factor F     everything in the full directory is so many times as much; 1
//   --sizes A,B    of empty, tenth, full
//   --keep         leaves the directories; --reuse takes those that were left
//   --store-only   the single writer's ceiling alone
//   --readme       puts the table into bench/README.md
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { databaseName, openWriting } from "../src/store/sqlite/engine/open.ts";
import { takeMachine } from "./group.ts";
import { intoReadme } from "./readme.ts";
import { fill, type Filled, type Sizes } from "./scale-fill.ts";
import { sendOne } from "./scale-load.ts";
import * as measure from "./scale-measure.ts";
import { measureStore } from "./scale-store.ts";
import { scaleTable, type SizeResult } from "./scale-table.ts";
import { compile, folder, startSink } from "./tools.ts";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    messages: { type: "string", default: "10000" },
    minutes: { type: "string", default: "15" },
    disk: { type: "string", default: "40" },
    factor: { type: "string", default: "1" },
    sizes: { type: "string", default: "empty,tenth,full" },
    keep: { type: "boolean", default: false },
    reuse: { type: "boolean", default: false },
    "store-only": { type: "boolean", default: false },
    readme: { type: "boolean", default: false },
  },
});
const log = (text: string): void =>
  void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

const whole: Sizes = { messages: 10_000_000, events: 50_000_000, queued: 1_000_000, suppressed: 10_000_000 };
/** Enough for a due mail of each receiver in every start. */
const leastQueued = 400;
/** What a finished message with its events takes. */
const guess = { bytesOfMessage: 4600, bytesOfQueued: 6000, bytesOfSuppressed: 220, secondsOfMessage: 70e-6 };
const home = join(folder, "scale");
await takeMachine(folder);
const startedAt = new Date().toISOString();
const tools = compile();
const results = new Map<string, SizeResult>();

for (const name of flags.sizes.split(",")) results.set(name, resultOf(await filled(name)));
if (!flags["store-only"]) {
  for (let round = 1; round <= Number(flags.rounds); round++)
    for (const [name, result] of results) await oneRound(name, result, round);
}
for (const [name, result] of results) await once(name, result);
report();
if (!flags.keep) rmSync(home, { recursive: true, force: true });

function resultOf(one: Filled): SizeResult {
  return { filled: one, runs: [], coldStartMs: NaN, warm: null, cold: null, purge: null, store: [] };
}

async function filled(name: string): Promise<Filled> {
  const dataDir = join(home, name);
  const noted = join(home, `${name}.json`);
  if (flags.reuse && existsSync(noted)) return JSON.parse(readFileSync(noted, "utf8")) as Filled;
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  await writeTemplates(dataDir);
  const sizes = sizesOf(name);
  log(`${name}: filling ${JSON.stringify(sizes)}`);
  const made = fill(dataDir, sizes, Date.now());
  log(`${name}: ${(made.bytes / 1e9).toFixed(1)} GB in ${made.seconds.toFixed(0)} s`);
  writeFileSync(noted, JSON.stringify(made));
  return made;
}

function sizesOf(name: string): Sizes {
  const factor = Number(flags.factor) * (name === "tenth" ? 0.1 : name === "empty" ? 0 : 1);
  const times = (n: number): number => Math.floor(n * factor);
  const sizes: Sizes = {
    messages: times(whole.messages),
    events: times(whole.events),
    queued: Math.max(leastQueued, times(whole.queued)),
    suppressed: times(whole.suppressed),
  };
  const { bavail, bsize } = statfsSync(folder);
  const others = [...results.values()].reduce((sum, { filled: { bytes } }) => sum + bytes, 0);
  const room = Math.min(Number(flags.disk) * 1e9 - others, (bavail * bsize * 2) / 3);
  const forHistory = room - sizes.queued * guess.bytesOfQueued - sizes.suppressed * guess.bytesOfSuppressed;
  const most = Math.min(
    forHistory / guess.bytesOfMessage,
    (Number(flags.minutes) * 60) / guess.secondsOfMessage,
  );
  if (sizes.messages <= most) return sizes;
  const share = Math.max(0, most) / sizes.messages;
  log(`${name}: room and time for ${Math.round(share * 100)} % of the history`);
  return {
    ...sizes,
    messages: Math.floor(sizes.messages * share),
    events: Math.floor(sizes.messages * share) * 5,
  };
}

/** One message that is delivered and one that is deferred, by the product itself. */
async function writeTemplates(dataDir: string): Promise<void> {
  for (const deferPercent of [0, 100]) {
    const sink = await startSink(tools, { addresses: 1, deferPercent });
    if (deferPercent > 0) dropDomain(dataDir);
    const running = await measure.start(tools, dataDir);
    await sendOne("template@d0.test", 4096);
    while (sink.stats().messages + sink.stats().deferred === 0) await wait(10);
    await wait(500);
    await running.stop();
    await sink.stop();
  }
}

function dropDomain(dataDir: string): void {
  const db = openWriting(join(dataDir, databaseName));
  db.exec("DELETE FROM domains");
  db.close();
}

async function oneRound(name: string, result: SizeResult, round: number): Promise<void> {
  const run = await measure.measureRun(tools, result.filled, Number(flags.messages));
  result.runs.push(run);
  const { firstDeliveryMs, cpuMicros, perSecond, peakBytes, post, others } = run;
  log(
    `${round}/${flags.rounds} ${name}: start ${firstDeliveryMs.toFixed(0)} ms, ${cpuMicros.toFixed(0)} µs, ${perSecond.toFixed(0)}/s, ` +
      `${(peakBytes / 1e6).toFixed(0)} MB, POST p99 ${post.p99.toFixed(1)} ms, others ${(others * 100).toFixed(0)} %`,
  );
}

/** What is measured once a directory: the last two change it. */
async function once(name: string, result: SizeResult): Promise<void> {
  const { filled: one } = result;
  if (!flags["store-only"]) {
    result.coldStartMs = await measure.startOnly(tools, one, true);
    result.warm = measure.measureSuppression(one, 100_000, false);
    result.cold = measure.measureSuppression(one, 5000, true);
  }
  measure.warmUp(one.dataDir);
  for (const callers of [1, 20, 100, 1000]) {
    const messages = Math.min(20_000, callers * 2000);
    const figures = await measureStore(one.dataDir, one.people, { callers, messages, sizeBytes: 4096 });
    log(
      `${name}: ${callers} callers, ${figures.perSecond.toFixed(0)}/s, ${figures.callsPerCommit.toFixed(1)} calls a commit, ${figures.cpuMicros.toFixed(0)} µs`,
    );
    result.store.push(figures);
  }
  if (!flags["store-only"] && one.messages > 0)
    result.purge = measure.measurePurge(one, Math.min(20_000, one.messages / 2), 1000);
}

function report(): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, ${Math.round(totalmem() / 2 ** 30)} GB`;
  const command = `npm run bench:scale -- ${process.argv.slice(2).join(" ")}`.replace(/ -- $/, "");
  const about = `Measured ${startedAt.slice(0, 16).replace("T", " ")} UTC on ${machine}, with \`${command}\`.`;
  const text = `### By what is stored\n\n${about}\n\n${scaleTable(results)}`;
  process.stdout.write(`${text}\n`);
  const file = join(import.meta.dirname, "results", `scale-${startedAt.replaceAll(":", "-")}.json`);
  mkdirSync(join(import.meta.dirname, "results"), { recursive: true });
  writeFileSync(
    file,
    `${JSON.stringify({ startedAt, command, machine, sizes: Object.fromEntries(results) }, null, 2)}\n`,
  );
  log(`written to ${file}`);
  if (flags.readme) intoReadme("scale", [text]);
}
