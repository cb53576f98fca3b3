// Loaded into the daemon's own process by `node --import`: starts and ends threads beside its work, so many a second, the
// product's signing and reading threads and threads that compile fresh code. Half of them are ended in the middle of it.
// SVC_CHURN is JSON: {"dist","database","perSecond","report"}. Writes a line a second to the file `report`.
import { generateKeyPairSync, randomInt } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, Worker } from "node:worker_threads";

export interface ChurnWork {
  dist: string;
  database: string;
  perSecond: number;
  report: string;
}

export interface ChurnReport {
  pid: number;
  version: string;
  v8: string;
  started: Record<Kind, number>;
  /** Ended by themselves, or after their answer. */
  ended: number;
  /** Ended while they were at work. */
  cutOff: number;
  /** What a thread threw: none is expected. */
  failed: number;
  lastFailure: string | null;
  running: number;
  residentBytes: number;
}

type Kind = "signing" | "reading" | "compiling";

const mostRunning = 6;
const kinds: Kind[] = ["signing", "reading", "compiling"];
/** Small functions of ever new shapes, called until each compiler of the engine has had them. */
const compiling = `
  const { parentPort } = require("node:worker_threads");
  const fresh = (n) => new Function("a", "b", \`let s = \${n}; for (let i = 0; i < 400; i++) s = (s * 31 + a[i % a.length] + b.k\${n % 97}) % 1e9; return s;\`);
  const list = [1, 2.5, 3, 4.25];
  for (let n = 0; n < 150; n++) {
    const [run, record] = [fresh(n), { ["k" + (n % 97)]: n }];
    for (let i = 0; i < 60; i++) run(list, record);
    if (n === 20) parentPort.postMessage("compiling");
  }
  parentPort.postMessage("done");
`;

if (isMainThread && process.env["SVC_CHURN"]) churn(JSON.parse(process.env["SVC_CHURN"]) as ChurnWork);

function churn(work: ChurnWork): void {
  const report: ChurnReport = {
    pid: process.pid,
    version: process.version,
    v8: process.versions.v8,
    started: { signing: 0, reading: 0, compiling: 0 },
    ended: 0,
    cutOff: 0,
    failed: 0,
    lastFailure: null,
    running: 0,
    residentBytes: 0,
  };
  const call = signCall();
  let turn = 0;
  const startOne = (): void => {
    const kind = kinds[turn++ % kinds.length] ?? "signing";
    if (report.running >= mostRunning || !existsSync(work.database)) return;
    report.started[kind]++;
    report.running++;
    const worker = startOf(kind, work);
    let over = false;
    const end = (cut: boolean): void => {
      if (over) return;
      over = true;
      if (cut) report.cutOff++;
      else report.ended++;
      void worker.terminate();
    };
    const cutAfter = turn % 2 === 0 ? randomInt(1, 60) : null;
    if (cutAfter !== null) setTimeout(() => end(true), cutAfter).unref();
    if (kind === "signing") worker.postMessage(Array.from({ length: 8 }, () => call));
    worker.on("message", (message: unknown) => {
      if (message !== "compiling") end(false);
    });
    worker.on("error", (error: unknown) => {
      report.failed++;
      report.lastFailure = String(error);
    });
    worker.on("exit", () => report.running--);
  };
  setInterval(startOne, 1000 / work.perSecond).unref();
  setInterval(() => {
    report.residentBytes = process.memoryUsage.rss();
    appendFileSync(work.report, `${JSON.stringify(report)}\n`);
  }, 1_000).unref();
}

function startOf(kind: Kind, { dist, database }: ChurnWork): Worker {
  const options = { execArgv: [], env: {}, name: `churn-${kind}` };
  if (kind === "compiling") return new Worker(compiling, { ...options, eval: true });
  if (kind === "signing") return new Worker(join(dist, "signing-thread.js"), options);
  return new Worker(join(dist, "reader-thread.js"), { ...options, workerData: { path: database } });
}

/** As signing.ts sends it: one call with both keys. */
function signCall(): object {
  const pem = { type: "pkcs8", format: "pem" } as const;
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export(pem);
  const ed25519 = generateKeyPairSync("ed25519").privateKey.export(pem);
  return {
    section:
      "From: a@example.test\r\nTo: b@d0.test\r\nSubject: churn\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\n",
    bodyHash: Buffer.alloc(32, 7).toString("base64"),
    keys: [
      { domain: "example.test", selector: "r", algorithm: "rsa-sha256", privatePem: rsa },
      { domain: "example.test", selector: "e", algorithm: "ed25519-sha256", privatePem: ed25519 },
    ],
    signedAt: Date.UTC(2026, 10, 28),
  };
}
