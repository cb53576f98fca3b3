// `npm run bench:profile`: where the processor time of a message goes. perf samples all threads of the product
// under full load, only while they run on a processor; what the kernel counts for each thread is laid over it, so
// that the table sums to the whole. Needs root and perf (bench/peers.sh).
//   --row NAME      a row of rows.ts; signed-4k
//   --contender A   its first one; it must be svc
//   --seconds S     10
//   --functions N   lists so many functions of ours on stderr, with what is below them; 40
//   --readme        puts the table into bench/README.md
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { endAll, takeMachine } from "./group.ts";
import { quiet } from "./measure.ts";
import type { RunningProduct } from "./parties/product.ts";
import { intoReadme } from "./readme.ts";
import { rows } from "./rows.ts";
import { readSamples, type Samples, type ThreadSamples } from "./stages.ts";
import { compile, folder, startSink } from "./tools.ts";

const warmUpMessages = 5_000;
const samplesPerSecond = 499;
/** Threads whose stages are one. */
const oneLine = new Map([
  ["libuv-worker", "RSA signatures; writing of the log"],
  ["V8Worker", "garbage collection and compiling"],
]);
const root = resolve(import.meta.dirname, "..");
const bundle = join(import.meta.dirname, "results/profiled");

const { values: flags } = parseArgs({
  options: {
    row: { type: "string", default: "signed-4k" },
    contender: { type: "string" },
    seconds: { type: "string", default: "10" },
    functions: { type: "string", default: "40" },
    readme: { type: "boolean", default: false },
  },
});
const row = rows.find(({ name }) => name === flags.row);
const contender = row?.contenders.find(({ name }) => name === (flags.contender ?? row.contenders[0]?.name));
if (!contender)
  throw new Error(`no such row or contender; the rows are ${rows.map(({ name }) => name).join(", ")}`);

// The product as it is built, with maps beside it.
rmSync(bundle, { recursive: true, force: true });
execFileSync(join(root, "node_modules/.bin/tsup"), ["--sourcemap", "--out-dir", bundle], {
  cwd: root,
  stdio: "ignore",
});

await takeMachine(folder);
const tools = compile();
const sink = await startSink(tools, contender.sink);
const command: [string, ...string[]] = [process.execPath, "--perf-basic-prof", join(bundle, "svc.js")];
const recording = join(folder, "perf.data");
try {
  const running = (await contender.party.start({ ...contender.setting, command }, tools)) as RunningProduct;
  const ground = { running, sink, tools };
  await contender.measure(ground, warmUpMessages);
  const warm = await contender.measure(ground, warmUpMessages);
  const messages = Math.round((warm.perSecond * Number(flags.seconds)) / 1000) * 1000;
  await quiet(20);
  const perf = spawn(
    "perf",
    [
      "record",
      "-q",
      "-e",
      "cpu-clock",
      "-F",
      String(samplesPerSecond),
      "-g",
      "-p",
      String(running.pid),
      "-o",
      recording,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const before = threadTimes(running.pid);
  const measured = await contender.measure(ground, messages);
  const used = difference(before, threadTimes(running.pid));
  perf.kill("SIGINT");
  await once(perf, "exit");
  const script = spawn("perf", ["script", "-i", recording, "-F", "comm,tid,ip,sym,dso"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const samples = await readSamples(createInterface({ input: script.stdout }), bundle);
  const text = [
    `### ${flags.row}${flags.contender === undefined ? "" : `: ${flags.contender}`}`,
    "",
    `\`npm run bench:profile -- --row ${flags.row}\`, ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC: ` +
      `${messages} messages, ${measured.perSecond.toFixed(0)}/s, ${measured.cpuMicros.toFixed(0)} µs a message ` +
      `(sampling included; others used ${(measured.others * 100).toFixed(0)} % of the machine).`,
    "",
    table(used, samples, messages),
  ].join("\n");
  process.stdout.write(`${text}\n`);
  rmSync(`/tmp/perf-${running.pid}.map`, { force: true });
  const main = [...samples.keys()].find((name) => name.endsWith("MainThread")) ?? "MainThread"; // "node-MainThread" since Node 26
  listFunctions("main", used.get(main), samples.get(main), messages);
  if (flags.readme) intoReadme("profile", [text]);
  await running.stop();
} finally {
  await endAll();
  rmSync(recording, { force: true });
}

/** Microseconds on a processor by thread's name; threads of one name are one. */
function threadTimes(pid: number): Map<string, number> {
  const times = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8");
    const name = read("comm").trim();
    times.set(name, (times.get(name) ?? 0) + Number(read("schedstat").split(" ")[0]) / 1000);
  }
  return times;
}

function difference(before: Map<string, number>, after: Map<string, number>): Map<string, number> {
  return new Map(Array.from(after, ([name, micros]) => [name, micros - (before.get(name) ?? 0)]));
}

function table(used: Map<string, number>, samples: Map<string, ThreadSamples>, messages: number): string {
  const lines = [
    "| thread | stage | JavaScript | native | kernel | µs a message |",
    "|---|---|---:|---:|---:|---:|",
  ];
  const line = (thread: string, stage: string, of: Samples, micros: number): void => {
    const cell = (count: number): string => (count * micros < 0.05 ? "" : (count * micros).toFixed(1));
    const sum = of.script + of.native + of.kernel;
    lines.push(
      `| ${thread} | ${stage} | ${cell(of.script)} | ${cell(of.native)} | ${cell(of.kernel)} | ${cell(sum)} |`,
    );
  };
  const whole = { script: 0, native: 0, kernel: 0 };
  for (const [name, micros] of Array.from(used).toSorted((a, b) => b[1] - a[1])) {
    const thread = samples.get(name);
    if (!thread || micros < messages) continue;
    const worth = micros / messages / thread.total;
    const sum = { script: 0, native: 0, kernel: 0 };
    const small = { script: 0, native: 0, kernel: 0 };
    const total = (of: Samples): number => of.script + of.native + of.kernel;
    for (const [stage, of] of Array.from(thread.stages).toSorted((a, b) => total(b[1]) - total(a[1]))) {
      addTo(sum, of, 1);
      addTo(whole, of, worth);
      if (oneLine.has(name)) continue;
      if (total(of) * worth < 1) addTo(small, of, 1);
      else line(name, stage, of, worth);
    }
    if (total(small) > 0) line(name, "each below 1 µs", small, worth);
    line(`**${name}**`, oneLine.get(name) ?? "**all of it**", sum, worth);
  }
  line("**all**", "", whole, 1);
  return lines.join("\n");
}

function addTo(sum: Samples, of: Samples, factor: number): void {
  for (const kind of ["script", "native", "kernel"] as const) sum[kind] += of[kind] * factor;
}

function listFunctions(
  name: string,
  micros: number | undefined,
  thread: ThreadSamples | undefined,
  messages: number,
): void {
  if (!thread || micros === undefined) return;
  const worth = micros / messages / thread.total;
  const total = (of: Samples): number => of.script + of.native + of.kernel;
  process.stderr.write(
    `\n${name}: functions of ours with what is below them, µs a message (script native kernel)\n`,
  );
  for (const [label, of] of Array.from(thread.functions)
    .toSorted((a, b) => total(b[1]) - total(a[1]))
    .slice(0, Number(flags.functions))) {
    const parts = [total(of), of.script, of.native, of.kernel].map((n) => (n * worth).toFixed(1).padStart(7));
    process.stderr.write(`${parts.join("")}  ${label}\n`);
  }
}
