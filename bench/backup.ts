// `npm run bench:backup`: does a backup of a large database delay a send? Fills a database with messages of 50 KB, then
// lets sends come at a steady rate, each at its time whether or not those before it are answered: without a backup, while
// one is made, and while the write-ahead log is brought back to its size afterwards. What counts is the longest time from
// the moment a send was due to its commit. A second thread of this process notes how long the machine kept it from
// running, which no program can help. Needs no root; the directories are removed at the end.
//   --gb N       of the database; 5
//   --rate N     sends a second; 300
//   --size N     bytes of each; 4096
//   --seconds N  of the stretch before and of the one after; 30
//   --keep       leaves the database; --reuse takes the one that was left
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { systemClock } from "../src/clock.ts";
import { createLog } from "../src/log.ts";
import { openStore } from "../src/store/sqlite/sqlite-store.ts";
import type { Store } from "../src/store/store.ts";
import { beginBoot, mint, newMessage, owner, settlementOf } from "../test/store/values.ts";
import { folder } from "./tools.ts";

const { values: flags } = parseArgs({
  options: {
    gb: { type: "string", default: "5" },
    rate: { type: "string", default: "300" },
    size: { type: "string", default: "4096" },
    seconds: { type: "string", default: "30" },
    keep: { type: "boolean", default: false },
    reuse: { type: "boolean", default: false },
  },
});
const [rate, seconds] = [Number(flags.rate), Number(flags.seconds)];
const home = join(folder, "backup");
const [dataDir, target] = [join(home, "data"), join(home, "copy")];
const database = join(dataDir, "svc.db");
const fillBytes = 50_000;
const fillCallers = 64;
const tickMs = 2;
const lookMs = 100;

interface Stretch {
  name: string;
  seconds: number;
  sends: number;
  p50: number;
  p99: number;
  longest: number;
  over100: number;
  /** The longest time for which the second thread was not run. */
  heldByMachine: number;
  mostLogBytes: number;
}

const held = new Int32Array(new SharedArrayBuffer(4));
/** A second thread that does nothing but look at the time: what delays it as well is the machine's doing. */
const second = new Worker(
  `const held = new Int32Array(require("node:worker_threads").workerData);
   let last = performance.now();
   setInterval(() => {
     const now = performance.now();
     const late = Math.round(now - last - 5);
     if (late > Atomics.load(held, 0)) Atomics.store(held, 0, late);
     last = now;
   }, 5);`,
  { eval: true, workerData: held.buffer },
);

if (!flags.reuse) rmSync(home, { recursive: true, force: true });
mkdirSync(dataDir, { recursive: true, mode: 0o700 });
const store = await openStore({
  node: "bench",
  dataDir,
  clock: systemClock,
  log: createLog({ level: "warn" }),
  mint,
  minFreeShare: 0,
  onLost(detail) {
    throw new Error(detail);
  },
});
try {
  await beginBoot(store, owner, "bench").catch(() => undefined);
  const account = (await store.accountByName("default"))?.key ?? 0;
  await fill(store, account);
  const stretches: Stretch[] = [];
  await measured("warm-up", store, account, wait(5000));
  stretches.push(await measured("without a backup", store, account, wait(seconds * 1000)));
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { mode: 0o700 });
  const signal = new AbortController().signal;
  const copy = store.copyInto({ directory: target, content: "all", onProgress: () => undefined, signal });
  stretches.push(await measured("during the backup", store, account, copy));
  stretches.push(await measured("after it", store, account, wait(seconds * 1000)));
  report(stretches);
} finally {
  await store.close();
  await second.terminate();
  if (!flags.keep) rmSync(home, { recursive: true, force: true });
}

/** Accepted and settled, so that nothing waits in the queue. */
async function fill(to: Store, account: number): Promise<void> {
  const text = `Subject: x\r\n\r\n${"x".repeat(fillBytes)}`;
  const whole = Number(flags.gb) * 1e9;
  const isFull = (): boolean => existsSync(database) && statSync(database).size >= whole;
  const call = async (): Promise<void> => {
    for (let count = 0; count % 20 > 0 || !isFull(); count++) await send(to, account, text);
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: fillCallers }, call));
  process.stderr.write(`filled in ${Math.round((performance.now() - began) / 1000)} s\n`);
}

async function send(to: Store, account: number, text: string, onAccepted = (): void => undefined) {
  const at = Date.now();
  const accepted = await to.acceptMessage(newMessage({ accountKey: account, at, lease: true, text }));
  onAccepted();
  const [job] = accepted.kind === "accepted" ? accepted.jobs : [];
  if (!job) throw new Error(`not accepted: ${accepted.kind}`);
  await to.settle(settlementOf(job, at));
}

/** Sends at the rate until `until` resolves, and until the last of them is answered. */
async function measured(name: string, to: Store, account: number, until: Promise<unknown>): Promise<Stretch> {
  const text = `Subject: x\r\n\r\n${"x".repeat(Number(flags.size))}`;
  const took: number[] = [];
  const open = new Set<Promise<unknown>>();
  let over = false;
  void until.finally(() => (over = true));
  let mostLogBytes = 0;
  const look = setInterval(() => {
    mostLogBytes = Math.max(mostLogBytes, statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  }, lookMs);
  Atomics.store(held, 0, 0);
  const began = performance.now();
  for (let begun = 0; !over;) {
    for (; begun < ((performance.now() - began) / 1000) * rate; begun++) {
      const due = began + (begun / rate) * 1000;
      const one = send(to, account, text, () => void took.push(performance.now() - due));
      open.add(one);
      void one.finally(() => open.delete(one));
    }
    await wait(tickMs);
  }
  await Promise.all(open);
  await until;
  clearInterval(look);
  took.sort((a, b) => a - b);
  const part = (share: number): number =>
    took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
  return {
    name,
    seconds: (performance.now() - began) / 1000,
    sends: took.length,
    p50: part(0.5),
    p99: part(0.99),
    longest: took.at(-1) ?? 0,
    over100: took.filter((ms) => ms > 100).length,
    heldByMachine: Atomics.load(held, 0),
    mostLogBytes,
  };
}

function report(stretches: Stretch[]): void {
  const gigabytes = (statSync(database).size / 1e9).toFixed(1);
  process.stdout.write(
    `Database of ${gigabytes} GB, ${rate} sends a second of ${flags.size} bytes; milliseconds from due to committed\n\n` +
      `| | seconds | sends | p50 | p99 | longest | over 100 ms | machine held a thread | log MB |\n|---|---|---|---|---|---|---|---|---|\n` +
      stretches
        .map(
          (one) =>
            `| ${one.name} | ${one.seconds.toFixed(0)} | ${one.sends} | ${one.p50.toFixed(1)} | ${one.p99.toFixed(1)} | ` +
            `${one.longest.toFixed(0)} | ${one.over100} | ${one.heldByMachine} | ${Math.round(one.mostLogBytes / 1e6)} |\n`,
        )
        .join(""),
  );
}
