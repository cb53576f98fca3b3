// `npm run bench`: measures svc and its peers side by side, pair by pair, in rounds, and prints a table with the
// targets beside it. Needs root, `npm run build`, and bench/peers.sh once. Everything stays on loopback.
//   --rounds N      3
//   --seconds S     of one measurement, about; 8
//   --rows A,B      names of rows.ts; all by default
//   --contenders A  only these; targets that need the others are left out
//   --quick         one round of 2 seconds
//   --json FILE     bench/results/<time>.json
//   --readme        puts the rows into bench/README.md
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, takeMachine } from "./group.ts";
import { quiet, type Measured } from "./measure.ts";
import { intoReadme } from "./readme.ts";
import { rows, type Contender, type ContenderSetup, type Row } from "./rows.ts";
import { sectionOf, type RowResult } from "./table.ts";
import { compile, folder, startSink, type Tools } from "./tools.ts";

const warmUpMessages = 3_000;
/** Until compilers have settled, ours and the peers': daemons run for months. */
const warmUpSeconds = 5;
const retries = 2;
const fewest = 1_000;
const most = 200_000;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string" },
    seconds: { type: "string" },
    rows: { type: "string" },
    contenders: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    readme: { type: "boolean", default: false },
  },
});
const rounds = Number(flags.rounds ?? (flags.quick ? 1 : 3));
const seconds = Number(flags.seconds ?? (flags.quick ? 2 : 8));
const log = (text: string): void =>
  void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

await takeMachine(folder);
const tools = compile();
const startedAt = new Date().toISOString();
const results: RowResult[] = [];
try {
  for (const row of chosenRows()) results.push(await measureRow(row, tools));
  report();
} finally {
  await endAll();
}

function chosenRows(): Row[] {
  const names = flags.rows?.split(",");
  const unknown = names?.filter((name) => !rows.some((row) => row.name === name)) ?? [];
  if (unknown.length > 0) {
    log(`no row ${unknown.join(", ")}; there are ${rows.map(({ name }) => name).join(", ")}`);
    process.exit(2);
  }
  return rows
    .filter(({ name }) => names?.includes(name) ?? true)
    .map((row) => ({
      ...row,
      contenders: row.contenders.filter(({ name }) => flags.contenders?.split(",").includes(name) ?? true),
    }));
}

async function measureRow(row: Row, tools: Tools): Promise<RowResult> {
  const measured: RowResult["rounds"] = [];
  for (let round = 1; round <= rounds; round++) {
    const of: Record<string, Measured> = {};
    for (const contender of row.contenders) {
      of[contender.name] = await measureOne(
        contender,
        `${row.name} ${round}/${rounds} ${contender.name}`,
        tools,
      );
    }
    measured.push(of);
  }
  return { row, rounds: measured };
}

/** Started afresh, warmed up, measured; again where others spoiled it. The best of what there is counts. */
async function measureOne(contender: Contender, what: string, tools: Tools): Promise<Measured> {
  const sink = await startSink(tools, contender.sink);
  try {
    const running = await contender.party.start(contender.setting, tools);
    try {
      const setup = { running, sink, tools };
      const messages = contender.fixedMessages ?? (await enough(contender, setup));
      let best: Measured | null = null;
      for (let attempt = 0; attempt <= retries; attempt++) {
        await quiet(flags.quick ? 1 : 10);
        const measured = await contender.measure(setup, messages);
        log(`${what}: ${said(measured)}`);
        if (best === null || measured.others < best.others) best = measured;
        if (measured.fault === null || contender.fixedMessages !== undefined) break;
      }
      if (best === null) throw new Error("unreachable");
      return best;
    } finally {
      await running.stop();
    }
  } finally {
    await sink.stop();
  }
}

function said({ messages, perSecond, perCpuSecond, cpuMicros, peakBytes, fault }: Measured): string {
  if (messages === 0) return `${(peakBytes / 1e6).toFixed(0)} MB`;
  const rate = `${perSecond.toFixed(0)}/s, ${perCpuSecond.toFixed(0)} per CPU-s, ${cpuMicros.toFixed(0)} µs`;
  return fault === null ? rate : `${rate} (${fault})`;
}

/** Warms it up, and says how many messages fill the time. */
async function enough(contender: Contender, setup: ContenderSetup): Promise<number> {
  const warmUntil = performance.now() + (flags.quick ? 0 : warmUpSeconds * 1000);
  let perSecond: number;
  do ({ perSecond } = await contender.measure(setup, warmUpMessages));
  while (performance.now() < warmUntil);
  return Math.min(most, Math.max(fewest, Math.round((perSecond * seconds) / 1000) * 1000));
}

function report(): void {
  const model = cpus()[0]?.model.trim() ?? "unknown";
  const machine = `${cpus().length} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GB`;
  const command = `npm run bench -- ${process.argv.slice(2).join(" ")}`.replace(/ -- $/, "");
  const about = `${startedAt.slice(0, 16).replace("T", " ")} UTC, ${machine}, \`${command}\``;
  const sections = results.map((result) => sectionOf(result, about));
  process.stdout.write(`${sections.join("\n")}\n`);
  const file = flags.json ?? join(import.meta.dirname, "results", `${startedAt.replaceAll(":", "-")}.json`);
  mkdirSync(dirname(file), { recursive: true });
  const rowsJson = results.map(({ row, rounds: each }) => ({
    row: row.name,
    title: row.title,
    rounds: each,
  }));
  writeFileSync(file, `${JSON.stringify({ startedAt, command, machine, rows: rowsJson }, null, 2)}\n`);
  log(`written to ${file}`);
  if (flags.readme) intoReadme("table", sections);
}
