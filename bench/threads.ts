// A long run at full load, SMTP and REST at once, while threads start and end in the very process that carries the
// load (load/thread-churn.ts): does the engine stand it? An abort is counted with its message, and the run goes on with
// a fresh daemon. `npm run build && npx node bench/threads.ts`; root, as for the bench.
//   --minutes N     60
//   --node PATH     the Node.js that runs the daemon; this one by default
//   --restarts N    thread starts in a second, 12
//   --flags "..."   options of that Node.js
//   --json FILE     the result; also on standard output
// SVC_BENCH_DIR and SVC_BENCH_PORTS keep two runs side by side apart.
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createGroup, endAll, takeMachine, takeTurns } from "./group.ts";
import type { ChurnReport, ChurnWork } from "./load/thread-churn.ts";
import { allAnswered } from "./measure.ts";
import { startProduct, type RunningProduct } from "./parties/product.ts";
import { createKey, runRest } from "./rest.ts";
import { raisedLimits } from "./webhooks.ts";
import { compile, folder, ports, runSource, startSink, type Sink } from "./tools.ts";

const { values: flags } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    node: { type: "string", default: process.execPath },
    restarts: { type: "string", default: "12" },
    flags: { type: "string", default: "" },
    json: { type: "string" },
  },
});

interface Abort {
  at: string;
  code: number | null;
  signal: string | null;
  /** What the process said last. */
  said: string;
}

/** Of each protocol in a round, between which the queue runs empty. */
const roundMessages = 1_000;
/** Few: a machine that others load too must still answer each within its time. */
const connections = 8;
const destinations = 50;
const dist = resolve(import.meta.dirname, "../dist");
const reportFile = join(folder, "threads.jsonl");
const until = Date.now() + Number(flags.minutes) * 60_000;
const aborts: Abort[] = [];
const faults: string[] = [];
/** One a minute. */
const resident: number[] = [];
let [sent, delivered, finished] = [0, 0, 0];
let [notedAt, secondsPast] = [Date.now(), 0];
const log = (text: string): void =>
  void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

await takeMachine(folder);
takeTurns();
const tools = compile();
rmSync(reportFile, { force: true });
const sink = await startSink(tools, { addresses: destinations });
try {
  while (Date.now() < until) await oneDaemon(sink);
  const result = summary();
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  if (flags.json) writeFileSync(flags.json, `${JSON.stringify(result, null, 2)}\n`);
} finally {
  await endAll();
}

/** Until the time is over, or the daemon is. */
async function oneDaemon(receiver: Sink): Promise<void> {
  const churn: ChurnWork = {
    dist,
    database: join(folder, "svc/data/svc.db"),
    perSecond: Number(flags.restarts),
    report: reportFile,
  };
  process.env["SVC_CHURN"] = JSON.stringify(churn);
  const loader = join(import.meta.dirname, "load/thread-churn.ts");
  const ours = [
    "--expose-gc",
    "--v8-pool-size=0",
    "--max-semi-space-size=16",
    "--heap-growing-percent=150",
    ...flags.flags.split(" ").filter(Boolean),
  ];
  const command: [string, ...string[]] = [flags.node, ...ours, "--import", loader, join(dist, "svc.js")];
  const config = { limits: raisedLimits };
  const running = await startProduct({ signed: true, route: "mx", destinations, command }, tools, { config });
  const ended = new Promise<Abort>((done) => {
    running.child.once("exit", (code, signal) =>
      done({ at: new Date().toISOString(), code, signal, said: lastWords() }),
    );
  });
  const key = await createKey(running);
  const rounds = async (): Promise<null> => {
    while (Date.now() < until) await round(running, receiver, key);
    return null;
  };
  try {
    const abort = await Promise.race([ended, rounds().catch((error) => faultOf(error, running, ended))]);
    if (abort) {
      aborts.push(abort);
      log(`the daemon ended with ${abort.code ?? abort.signal}: ${abort.said}`);
    }
  } finally {
    await running.stop();
  }
}

async function round(running: RunningProduct, receiver: Sink, key: string): Promise<void> {
  await receiver.reset();
  const generator = createGroup("generator");
  try {
    const sizeBytes = 1_000;
    const began = performance.now();
    await Promise.all([
      runSource(generator, tools, ports.smtp, {
        messages: roundMessages,
        sizeBytes,
        sessions: 10,
        destinations,
        perSecond: 0,
        firstNumber: 0,
      }),
      runRest(generator, { key, messages: roundMessages, sizeBytes, destinations, connections }),
    ]);
    sent += 2 * roundMessages;
    const missing = await allAnswered(receiver, 2 * roundMessages);
    delivered += receiver.stats().messages;
    if (missing)
      faults.push(`a round ended with ${receiver.stats().messages} of ${2 * roundMessages} delivered`);
    finished++;
    note(running, (2 * roundMessages) / ((performance.now() - began) / 1000));
  } finally {
    await generator.end();
  }
}

/** A load that broke off: because the daemon is gone, or for a reason of its own. */
async function faultOf(
  error: unknown,
  running: RunningProduct,
  ended: Promise<Abort>,
): Promise<Abort | null> {
  const gone = await Promise.race([ended, wait(5_000).then(() => null)]);
  if (!gone) faults.push(`the load broke off while process ${running.pid} ran on: ${String(error)}`);
  return gone;
}

function note(running: RunningProduct, perSecond: number): void {
  secondsPast += (Date.now() - notedAt) / 1000;
  notedAt = Date.now();
  if (secondsPast < 60 && resident.length > 0) return;
  secondsPast = 0;
  const last = reports().at(-1);
  resident.push(running.group.residentBytes());
  log(
    `${delivered} delivered, ${perSecond.toFixed(0)}/s, ${startsOf(last)} threads, ${aborts.length} aborts, ` +
      `${((resident.at(-1) ?? 0) / 1e6).toFixed(0)} MB`,
  );
}

function reports(): ChurnReport[] {
  if (!existsSync(reportFile)) return [];
  const lines = readFileSync(reportFile, "utf8").trimEnd().split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as ChurnReport);
}

function startsOf(report?: ChurnReport): number {
  return report ? Object.values(report.started).reduce((sum, n) => sum + n, 0) : 0;
}

function lastWords(): string {
  const file = join(folder, "svc/log");
  if (!existsSync(file)) return "";
  const text = readFileSync(file, "utf8");
  appendFileSync(join(folder, "aborted.log"), text.slice(-20_000));
  return text.slice(-1_500);
}

function summary(): Record<string, unknown> {
  const byProcess = Map.groupBy(reports(), ({ pid }) => pid);
  const last = Array.from(byProcess.values(), (all) => all.at(-1)).filter((one) => one !== undefined);
  const sum = (of: (report: ChurnReport) => number): number =>
    last.reduce((total, one) => total + of(one), 0);
  return {
    node: last.at(-1)?.version,
    v8: last.at(-1)?.v8,
    flags: flags.flags,
    minutes: Number(flags.minutes),
    rounds: finished,
    sent,
    delivered,
    threadStarts: sum(startsOf),
    threadsEnded: sum(({ ended }) => ended),
    threadsCutOff: sum(({ cutOff }) => cutOff),
    threadsFailed: sum(({ failed }) => failed),
    lastFailure: last.at(-1)?.lastFailure ?? null,
    daemons: byProcess.size,
    aborts,
    faults,
    residentMegabytes: resident.map((bytes) => Math.round(bytes / 1e6)),
  };
}
